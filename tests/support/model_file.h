/* SPDX-License-Identifier: Apache-2.0 */
/* Writes small .safetensors files for tests. */
#ifndef TESTS_SUPPORT_MODEL_FILE_H
#define TESTS_SUPPORT_MODEL_FILE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Write header text and data without any checks, so that broken files can be written too. */
static inline void model_file_write(const char *path, const char *header, const void *data, size_t n)
{
  FILE *file = fopen(path, "wb");
  uint64_t n_header = strlen(header);

  if (!file || fwrite(&n_header, 8, 1, file) != 1 || fputs(header, file) < 0 || (n && fwrite(data, n, 1, file) != 1)) {
    perror(path);
    exit(1);
  }
  fclose(file);
}

/* Write a RecJPQ model with these centroids [n_splits][n_subitems][split_dim]. */
static inline void model_file_write_recjpq(const char *path, const float *centroids, size_t n_splits, size_t n_subitems,
                                           size_t split_dim)
{
  char header[512];
  size_t bytes = n_splits * n_subitems * split_dim * sizeof(float);

  snprintf(header, sizeof header,
           "{\"__metadata__\":{\"sluice.similarity\":\"recjpq\"},"
           "\"centroids\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu,%zu],\"data_offsets\":[0,%zu]}}",
           n_splits, n_subitems, split_dim, bytes);
  model_file_write(path, header, centroids, bytes);
}

#endif
