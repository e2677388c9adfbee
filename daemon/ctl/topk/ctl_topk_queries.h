/* SPDX-License-Identifier: Apache-2.0 */
/* The queries of a file, one after the other: rows of an array, or lines of JSON. Thread: one. */
#ifndef DAEMON_CTL_CTL_TOPK_QUERIES_H
#define DAEMON_CTL_CTL_TOPK_QUERIES_H

#include <jansson.h>

#include "base/item.h"
#include "daemon/ctl/array/ctl_array.h"
#include "daemon/ctl/array/ctl_keys.h"
#include "daemon/ctl/text/ctl_fields.h"
#include "daemon/ctl/topk/ctl_topk_lines.h"

struct ctl_topk_options {
  const char *path;       /* .npy, .safetensors, .jsonl, or - */
  const char *tensor;     /* NULL: the only one */
  const char *keys;       /* the ids of an array's rows; NULL: the rows' numbers */
  const char *fields;     /* JSON: an object of fields that all queries have; NULL: none */
  struct ctl_fields more; /* that they have, too */
  uint64_t k;             /* of a query that has none; 0: not given */
  bool excludes_seen;     /* leave out what the user has seen whose name is the query's id */
  const char *answer_topic;
};

struct ctl_topk_queries {
  const struct ctl_topk_options *options;
  json_t *common; /* the fields that all queries have */
  json_t *ids;    /* of queries so far: the number of the line or row */
  struct ctl_array array;
  struct ctl_keys keys;
  float *numbers; /* of a row */
  struct ctl_topk_lines lines;
  bool has_lines;  /* and no array */
  uint64_t n_rows; /* of an array; 0: lines, whose number is not known */
  uint64_t at;     /* rows or lines that were read */
};

/* A query of the file. */
struct ctl_topk_query {
  uint64_t number; /* of its row, from 0 on, or of its line, from 1 on */
  char *id;
  json_t *json; /* without its id */
};

void ctl_topk_query_fini(struct ctl_topk_query *q);

/* Open a file. Returns ERR_ITEM for an array that cannot be used, ERR_USAGE, ERR_SYSTEM. The caller calls
 * ctl_topk_queries_fini() then too. */
err_t ctl_topk_queries_open(const struct ctl_topk_options *options, struct ctl_topk_queries *out);
void ctl_topk_queries_fini(struct ctl_topk_queries *q);

/* Do the rows of an array need a space? */
bool ctl_topk_queries_need_space(const struct ctl_topk_queries *q);

/* Give all queries a space.
 *
 * query_vector  numbers in a vector of a query; 0: not known
 *
 * Returns ERR_ITEM if the rows of an array have another number of them; ERR_USAGE; ERR_MEMORY. */
err_t ctl_topk_queries_set_space(struct ctl_topk_queries *q, const char *name, size_t query_vector);

/* Get the next query, without waiting for a pipe or a terminal.
 *
 * out  its id is NULL if there is none yet, or at the end; the caller releases it with ctl_topk_query_fini()
 *
 * Returns ERR_QUERY or ERR_ITEM if this one cannot be used, and out->number says which; the next call goes on after it.
 * ERR_SYSTEM if the file cannot be read.
 */
err_t ctl_topk_queries_next(struct ctl_topk_queries *q, struct ctl_topk_query *out);

/* Is there none left, after ctl_topk_queries_next() has given none? */
bool ctl_topk_queries_have_ended(const struct ctl_topk_queries *q);

#endif
