/* SPDX-License-Identifier: Apache-2.0 */
/* The input files of sluicectl eval: items and queries, opened, checked, and given to the engine. */
#ifndef DAEMON_CTL_CTL_EVAL_FILES_H
#define DAEMON_CTL_CTL_EVAL_FILES_H

#include "engine/engine.h"
#include "engine/model/safetensors.h"

/* The name of the only space. */
extern const char ctl_eval_space[];

enum { CTL_EVAL_KEY_BYTES = 8 };

/* Convert an id to an item's key and back. Keys are ordered as the ids are. */
void ctl_eval_key_of(int64_t id, uint8_t key[CTL_EVAL_KEY_BYTES]);
int64_t ctl_eval_id_of(struct span key);

struct ctl_eval_items {
  struct safetensors *file;
  struct tensor ids;   /* I64 [n] */
  struct tensor parts; /* floats [n, width], or codes U8 [n, width] */
  size_t n;
  size_t width;
};

/* Open the items' file. It has `item_ids`, which must be distinct, and `codes` if has_codes, else `item_embeddings`.
 * Returns ERR_MODEL or ERR_ITEM with the file, the tensor and what is expected. */
err_t ctl_eval_items_open(const char *path, bool has_codes, struct ctl_eval_items *out);
void ctl_eval_items_fini(struct ctl_eval_items *items);

/* A callback that is called now and then with the number of items or queries done. */
struct ctl_eval_watch {
  void (*tick)(void *context, size_t n_done);
  void *context;
};

/* Check all items and apply them. Returns ERR_ITEM with the row; the errors of engine_apply(). */
err_t ctl_eval_items_apply(const struct ctl_eval_items *items, struct engine *e, const struct ctl_eval_watch *watch);

struct ctl_eval_queries {
  struct safetensors *file;
  struct tensor embeddings; /* floats [n, width] */
  struct tensor user_ids;   /* I64 [n], if has_user_ids */
  struct tensor target_ids; /* I64 [n], if has_targets */
  bool has_user_ids;
  bool has_targets;
  size_t n;
  size_t width;
  struct query common; /* what all queries have: the filter, max_per and boosts, if there are some */
};

/* Open the queries' file. It has `query_embeddings`; `user_ids` are optional; `target_ids` are required if
 * wants_targets. Returns ERR_MODEL with the file, the tensor and what is expected. */
err_t ctl_eval_queries_open(const char *path, bool wants_user_ids, bool wants_targets, struct ctl_eval_queries *out);
void ctl_eval_queries_fini(struct ctl_eval_queries *queries);

/* Verify that each query's target is one of the items. Returns ERR_ITEM with the query; ERR_MEMORY. */
err_t ctl_eval_queries_verify_targets(const struct ctl_eval_queries *queries, const struct ctl_eval_items *items);

/* Make n queries from the file, beginning with number `first`.
 *
 * numbers  [n][width] receives the vectors; the queries point to it
 */
void ctl_eval_queries_get(const struct ctl_eval_queries *queries, size_t first, size_t n, uint32_t k,
                          const char *method, float *numbers, struct query *out);

/* Verify every query with this method. Returns ERR_METHOD; ERR_QUERY with the row.
 *
 * out  the method under the name it runs under
 */
err_t ctl_eval_queries_verify(const struct ctl_eval_queries *queries, const struct engine *e, uint32_t k,
                              const char *method, struct method *out);

#endif
