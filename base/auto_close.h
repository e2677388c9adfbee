/* SPDX-License-Identifier: Apache-2.0 */
/* Closing what a function has opened when it goes out of scope, if it was opened:
 *
 *   AUTO(auto_close_file) FILE *in = fopen(path, "rbe");
 *
 * For memory there is mem_free() (base/mem.h), also where malloc() has made it.
 */
#ifndef BASE_AUTO_CLOSE_H
#define BASE_AUTO_CLOSE_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"

static inline void auto_close_file(FILE **file)
{
  if (*file)
    fclose(*file);
}

static inline void auto_close_folder(DIR **folder)
{
  if (*folder)
    closedir(*folder);
}

static inline void auto_close_fd(const int *fd)
{
  if (*fd >= 0)
    close(*fd);
}

#endif
