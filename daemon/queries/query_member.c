/* SPDX-License-Identifier: Apache-2.0 */
/* One file with one id. It is empty after the group was left. */
#include "daemon/queries/query_member.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static int open_file(const char *folder, int flags)
{
  char path[PATH_MAX];

  snprintf(path, sizeof path, "%s/query-member", folder);
  if (flags & O_CREAT)
    return open(path, flags | O_CLOEXEC, 0600);
  return open(path, flags | O_CLOEXEC);
}

void query_member_read(const char *folder, char *id)
{
  int fd = open_file(folder, O_RDONLY);
  ssize_t n = fd < 0 ? 0 : read(fd, id, QUERY_MEMBER_MAX);

  id[n > 0 ? n : 0] = '\0';
  if (fd >= 0)
    close(fd);
}

void query_member_keep(const char *folder, const char *id)
{
  int fd = open_file(folder, O_WRONLY | O_CREAT | O_TRUNC);
  size_t n = strlen(id);

  if (fd < 0 || write(fd, id, n) != (ssize_t)n)
    log_warn("query_member_not_kept", "note=\"a restart after a kill may hold up the group's queries for the session "
                                      "time-out\"");
  if (fd >= 0)
    close(fd);
}
