/* SPDX-License-Identifier: Apache-2.0 */
/* The files of sluicectl eval: items and queries, as their numbers are needed. */
#ifndef DAEMON_CTL_CTL_EVAL_FILES_H
#define DAEMON_CTL_CTL_EVAL_FILES_H

#include "engine/engine.h"
#include "engine/model/safetensors.h"

/* The name of the one space. */
extern const char eval_space[];

enum { EVAL_KEY_BYTES = 8 };

/* An id as an item's key, whose bytes have the order of the numbers, and back. */
void eval_key_of(int64_t id, uint8_t key[EVAL_KEY_BYTES]);
int64_t eval_id_of(struct span key);

struct eval_items {
  struct safetensors *file;
  struct tensor ids;   /* I64 [n] */
  struct tensor parts; /* floats [n, width], or codes U8 [n, width] */
  size_t n;
  size_t width;
};

/* Open the items' file: item_ids, which must be distinct, and `codes` for codes, else `item_embeddings`.
 * Returns ERR_MODEL or ERR_ITEM, naming the file, the tensor and what is expected. */
err_t eval_items_open(const char *path, bool has_codes, struct eval_items *out);
void eval_items_fini(struct eval_items *items);

/* Called now and then with the number of items so far. */
struct eval_watch {
  void (*tick)(void *context, size_t n_done);
  void *context;
};

/* Check all items and apply them. Returns ERR_ITEM, naming the row; and what engine_apply() does. */
err_t eval_items_apply(const struct eval_items *items, struct engine *e, const struct eval_watch *watch);

struct eval_queries {
  struct safetensors *file;
  struct tensor embeddings; /* floats [n, width] */
  struct tensor user_ids;   /* I64 [n], where has_user_ids */
  struct tensor target_ids; /* I64 [n], where has_targets */
  bool has_user_ids;
  bool has_targets;
  size_t n;
  size_t width;
};

/* Open the queries' file: query_embeddings, user_ids if they are wanted and there, and target_ids if they are wanted.
 * Returns ERR_MODEL, naming the file, the tensor and what is expected. */
err_t eval_queries_open(const char *path, bool wants_user_ids, bool wants_targets, struct eval_queries *out);
void eval_queries_fini(struct eval_queries *queries);

/* Verify that each query's target is one of the items. Returns ERR_ITEM, naming the query; ERR_MEMORY. */
err_t eval_queries_verify_targets(const struct eval_queries *queries, const struct eval_items *items);

/* Queries first to first + n: what the file has of them, k and the method.
 *
 * numbers  [n][width]; the queries lie in it
 */
void eval_queries_get(const struct eval_queries *queries, size_t first, size_t n, uint32_t k, const char *method,
                      float *numbers, struct query *out);

/* Verify every query with this method. Returns ERR_METHOD; ERR_QUERY, naming the row.
 *
 * out  the method under the name by which it runs
 */
err_t eval_queries_verify(const struct eval_queries *queries, const struct engine *e, uint32_t k, const char *method,
                          struct method *out);

#endif
