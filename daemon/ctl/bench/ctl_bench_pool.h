/* SPDX-License-Identifier: Apache-2.0 */
/* The queries that sluicectl bench sends again and again: random ones, rows of an array, or lines of a file. They are
 * encoded once, so that sending costs little. Thread: one. */
#ifndef DAEMON_CTL_CTL_BENCH_POOL_H
#define DAEMON_CTL_CTL_BENCH_POOL_H

#include <jansson.h>

#include "base/region.h"

struct ctl_bench_pool_options {
  const char *space;  /* NULL: each query names its own */
  const char *method; /* NULL: exact */
  json_t *fields;     /* that all queries have */
  uint64_t k;
  const char *path;   /* .jsonl, .npy or .safetensors; NULL: random vectors */
  const char *tensor; /* NULL: the only one */
  uint64_t n_random;
  uint64_t seed;
  size_t query_vector;      /* length of a vector of the space; 0: it is not known */
  const char *answer_topic; /* the only reply_topic that queries may name */
};

struct ctl_bench_pool {
  struct span *queries; /* [n] protobuf, without an id */
  size_t n;
  size_t capacity;
  struct region region;
};

/* Make the queries. The space, the method and the k of a line are its own, if it has them. Other fields it may not have
 * twice.
 *
 * Returns ERR_QUERY or ERR_ITEM with the line or row that cannot be used; ERR_USAGE; ERR_SYSTEM. The caller calls
 * ctl_bench_pool_fini() then too.
 */
err_t ctl_bench_pool_open(const struct ctl_bench_pool_options *options, struct ctl_bench_pool *out);
void ctl_bench_pool_fini(struct ctl_bench_pool *p);

/* Append an id to a copy of a query.
 *
 * buffer  grown as needed; mem_free() it
 */
err_t ctl_bench_pool_name(const struct ctl_bench_pool *p, uint64_t i, const char *id, uint8_t **buffer,
                          size_t *capacity, struct span *out);

#endif
