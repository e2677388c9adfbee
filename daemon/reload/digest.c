/* SPDX-License-Identifier: Apache-2.0 */
/* Hash texts and files. */
#include "daemon/reload/digest.h"

#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/regular_file.h"

enum { FILE_BYTES_MAX = 16 << 20 };

static uint64_t add(uint64_t digest, const void *bytes, size_t n)
{
  return XXH3_64bits_withSeed(bytes, n, digest);
}

uint64_t digest_text(uint64_t digest, const char *text)
{
  return add(digest, text, strlen(text) + 1);
}

uint64_t digest_file(uint64_t digest, const char *path)
{
  struct stat status;
  char bytes[4096];
  ssize_t n;
  size_t n_left = FILE_BYTES_MAX;
  int fd;

  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
    return add(digest, &status.st_mtim, sizeof status.st_mtim);
  if (regular_file_open(path, &status, &fd) != ERR_OK)
    return digest;
  while (n_left > 0 && (n = read(fd, bytes, sizeof bytes)) > 0) {
    digest = add(digest, bytes, (size_t)n);
    n_left -= (size_t)n < n_left ? (size_t)n : n_left;
  }
  close(fd);
  return digest;
}
