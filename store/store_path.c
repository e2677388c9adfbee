/* SPDX-License-Identifier: Apache-2.0 */
/* Joining, comparing, looking for and syncing paths. */
#include "store/store_path.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/disk_error.h"

err_t store_path_join(const char *folder, const char *name, char out[PATH_MAX])
{
  if (snprintf(out, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
    FAIL(ERR_STORE, "the path %.64s... is too long", folder);
  return ERR_OK;
}

err_t store_path_find_store(const char *directory, bool *out)
{
  char file[PATH_MAX];

  TRY(store_path_join(directory, "data.mdb", file));
  bool is_there = access(file, F_OK) == 0;
  if (!is_there && errno != ENOENT && errno != ENOTDIR)
    FAIL(ERR_STORE, "%s cannot be opened: %s", file, strerror(errno));
  *out = is_there;
  return ERR_OK;
}

err_t store_path_verify_store(const char *directory)
{
  bool is_there;

  TRY(store_path_find_store(directory, &is_there));
  if (!is_there)
    FAIL(ERR_STORE, "there is no store in %s", directory);
  return ERR_OK;
}

/* Resolve the path of a folder, or of its parent if the folder is not there yet. */
static bool resolve(const char *path, char out[PATH_MAX])
{
  char parent[PATH_MAX];

  if (realpath(path, out))
    return true;
  return snprintf(parent, sizeof parent, "%s", path) < PATH_MAX && realpath(dirname(parent), out);
}

bool store_path_is_within(const char *path, const char *folder)
{
  char inner[PATH_MAX], outer[PATH_MAX];

  if (!resolve(path, inner) || !realpath(folder, outer))
    return false;
  size_t n = strlen(outer);
  return strncmp(inner, outer, n) == 0 && (inner[n] == '/' || inner[n] == '\0');
}

err_t store_path_sync(const char *path)
{
  AUTO(auto_close_fd) const int fd = open(path, O_RDONLY | O_CLOEXEC);

  if (fd < 0 || fsync(fd) != 0)
    FAIL(disk_error_is_full(errno) ? ERR_STORE_FULL : ERR_STORE, "%s cannot be written to the disk: %s", path,
         strerror(errno));
  return ERR_OK;
}
