/* SPDX-License-Identifier: Apache-2.0 */
/* The records of the control topic in the store: the newest value of each key, and the position in the topic, in one
 * transaction. The store does not know what the values mean.
 *
 * They are rows of table `meta`, so an older version of the daemon can still open the store: it ignores them.
 *
 * Thread: as store_apply().
 */
#ifndef STORE_STORE_MODELS_H
#define STORE_STORE_MODELS_H

#include "store/store.h"

/* A value has at most so many bytes. */
enum { STORE_MODEL_VALUE_MAX = 8192 };

struct store_model_record {
  struct span key; /* at most SPACE_NAME_MAX bytes */
  bool has_value;  /* false: the key is deleted */
  struct span value;
};

/* Put records, and the position after them.
 *
 * Returns ERR_OK when both are committed; otherwise nothing has changed, and the errors are those of store_apply().
 */
err_t store_models_put(struct store *s, const struct store_model_record *records, size_t n,
                       const struct store_position *position);

/* Read all records that have a value, in order of key, and the position.
 *
 * region        the records live here
 * has_position  false: none was put yet
 *
 * Returns ERR_STORE_CORRUPT with the key of a damaged row; ERR_STORE; ERR_MEMORY.
 */
err_t store_models_get(struct store *s, struct region *region, struct store_model_record **records, size_t *n,
                       bool *has_position, struct store_position *position);

#endif
