/* SPDX-License-Identifier: Apache-2.0 */
/* Write numpy's .npy files, for the peers. */
#ifndef TESTS_BENCH_BENCH_NPY_H
#define TESTS_BENCH_BENCH_NPY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Write an array [rows][cols] of type "<f4" or "|u1" with elements of `size` bytes. Exits if the disk is full. */
static inline void npy_write(const char *path, const char *type, const void *data, size_t rows, size_t cols,
                             size_t size)
{
  char header[128 + 1];
  FILE *file = fopen(path, "wb");
  int n = snprintf(header, sizeof header, "%cNUMPY%c%c%c%c{'descr': '%s', 'fortran_order': False, 'shape': (%zu, %zu)}",
                   0x93, 1, 0, 118, 0, type, rows, cols);
  /* The preamble contains zero bytes, so use the length that snprintf returned, not strlen(). */
  memset(header + n, ' ', sizeof header - 1 - (size_t)n);
  header[127] = '\n';
  if (!file || fwrite(header, 128, 1, file) != 1 || fwrite(data, cols * size, rows, file) != rows) {
    perror(path);
    exit(1);
  }
  fclose(file);
}

#endif
