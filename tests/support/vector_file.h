/* SPDX-License-Identifier: Apache-2.0 */
/* Writes models of vector spaces (dot, cosine, weighted_dot, bilinear) for tests. */
#ifndef TESTS_SUPPORT_VECTOR_FILE_H
#define TESTS_SUPPORT_VECTOR_FILE_H

#include "tests/support/model_file.h"

/* Write a model without tensors. dim 0: without sluice.dim. */
static inline void vector_file_write_plain(const char *path, const char *similarity, size_t dim)
{
  char header[256], entry[64] = "";

  if (dim)
    snprintf(entry, sizeof entry, ",\"sluice.dim\":\"%zu\"", dim);
  snprintf(header, sizeof header, "{\"__metadata__\":{\"sluice.similarity\":\"%s\"%s}}", similarity, entry);
  model_file_write(path, header, NULL, 0);
}

/* Write a weighted_dot model with weights [n]. */
static inline void vector_file_write_weights(const char *path, const float *v, size_t n)
{
  char header[256];

  snprintf(header, sizeof header,
           "{\"__metadata__\":{\"sluice.similarity\":\"weighted_dot\"},"
           "\"v\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
           n, n * sizeof *v);
  model_file_write(path, header, v, n * sizeof *v);
}

/* Write a bilinear model with a matrix [rows][columns]. */
static inline void vector_file_write_matrix(const char *path, const float *w, size_t rows, size_t columns)
{
  char header[256];

  snprintf(header, sizeof header,
           "{\"__metadata__\":{\"sluice.similarity\":\"bilinear\"},"
           "\"W\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[0,%zu]}}",
           rows, columns, rows * columns * sizeof *w);
  model_file_write(path, header, w, rows * columns * sizeof *w);
}

/* Write a bilinear model with factors [n][r_p] and [n][r_q]. pq holds one after the other. */
static inline void vector_file_write_factors(const char *path, const float *pq, size_t n, size_t r_p, size_t r_q)
{
  char header[512];
  size_t p_bytes = n * r_p * sizeof *pq, bytes = p_bytes + n * r_q * sizeof *pq;

  snprintf(header, sizeof header,
           "{\"__metadata__\":{\"sluice.similarity\":\"bilinear\"},"
           "\"P\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[0,%zu]},"
           "\"Q\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}}",
           n, r_p, p_bytes, n, r_q, p_bytes, bytes);
  model_file_write(path, header, pq, bytes);
}

#endif
