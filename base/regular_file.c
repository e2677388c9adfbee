/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a regular file, and refusing pipes, devices and directories. */
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/auto_close.h"

err_t regular_file_open(const char *path, struct stat *status, int *out)
{
  AUTO(auto_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat found;

  if (fd < 0)
    FAIL(ERR_CONFIG, "%s cannot be opened: %s", path, strerror(errno));
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode))
    FAIL(ERR_CONFIG, "%s is not a regular file", path);
  *status = found;
  *out = fd;
  fd = -1;
  return ERR_OK;
}
