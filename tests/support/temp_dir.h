/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary directory for one test, removed with everything in it. */
#ifndef TESTS_SUPPORT_TEMP_DIR_H
#define TESTS_SUPPORT_TEMP_DIR_H

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct temp_dir {
  char path[PATH_MAX / 2];
};

/* Remove a directory and everything in it. remove() fails on a directory that is not empty, so such a directory is
 * emptied first. */
static inline void temp_dir_remove(const char *path)
{
  DIR *entries = opendir(path);
  struct dirent *entry;
  char below[PATH_MAX];

  while (entries && (entry = readdir(entries))) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    if ((size_t)snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < sizeof below && remove(below) != 0)
      temp_dir_remove(below);
  }
  if (entries)
    closedir(entries);
  remove(path);
}

static inline void temp_dir_fini(struct temp_dir *dir)
{
  temp_dir_remove(dir->path);
}

/* Make the directory. Exits if it cannot be made. */
static inline void temp_dir_init(struct temp_dir *dir)
{
  const char *parent = getenv("TMPDIR");

  snprintf(dir->path, sizeof dir->path, "%s/sluice-test-XXXXXX", parent ? parent : "/tmp");
  if (!mkdtemp(dir->path) || chmod(dir->path, 0755) != 0) {
    perror(dir->path);
    exit(1);
  }
}

#endif
