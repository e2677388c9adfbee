/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing files by device and inode, so that links are noticed too. */
#include "daemon/ctl/ctl_output.h"

#include <sys/stat.h>

/* Only regular files are compared: a terminal may be read and written. */
static bool is_file(const char *path, const struct stat *file)
{
  struct stat status;

  return path && stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == file->st_dev &&
         status.st_ino == file->st_ino;
}

err_t ctl_output_verify(const char *option, const char *output, const struct ctl_input *inputs, size_t n)
{
  struct stat status;

  if (stat(output, &status) != 0)
    return ERR_OK;
  for (size_t i = 0; i < n; i++) {
    if (is_file(inputs[i].path, &status))
      FAIL(ERR_USAGE, "%s: %s has the %s: name another file", option, output, inputs[i].what);
  }
  return ERR_OK;
}
