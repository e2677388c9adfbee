/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of item changes: records of the catalogue topic, decoded and checked.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CATALOGUE_ITEM_BATCH_H
#define DAEMON_CATALOGUE_ITEM_BATCH_H

#include "base/region.h"
#include "daemon/catalogue/unknown_names.h"
#include "daemon/models/model_state.h"
#include "engine/engine.h"
#include "ingest/wire/item_format.h"

struct item_batch {
  struct item_change *changes; /* [capacity]; keys are borrowed from the records, or in the region */
  size_t n;
  size_t capacity;
  size_t value_bytes;       /* of the records that the changes come from */
  struct region region;     /* decoded parts and attributes, and mapped keys */
  struct span refused_part; /* the part that the last record was refused for, until the next one is added; n 0: none */
  struct unknown_names unknown_spaces;     /* counts since the start; a reset keeps them */
  struct unknown_names unknown_attributes; /* the same */
};

err_t item_batch_init(size_t capacity, struct item_batch *out);
void item_batch_fini(struct item_batch *b);
void item_batch_reset(struct item_batch *b);

/* Exchange the changes of two batches. The counts of unknown names stay. */
void item_batch_swap(struct item_batch *a, struct item_batch *b);

/* Make room for at least n changes in an empty batch. */
err_t item_batch_reserve(struct item_batch *b, size_t n);

/* How parts are judged. */
struct item_batch_rules {
  const struct engine *engine;
  enum config_unknown unknown_spaces;
  const struct model_state *models; /* which generation a plain name means, and when; NULL: the first, always */
};

/* Add a record as a change, unless none of its parts and attributes is kept. Parts of retired generations are not kept,
 * but their record is a change, perhaps one without parts.
 *
 * Returns an error of class REJECT, with the reason, when the record cannot be used; ERR_MEMORY. On error the batch has
 * no change more. Its value_bytes have grown anyway, and unknown names that came before the error are counted. */
err_t item_batch_add(struct item_batch *b, const struct item_format *format, const struct item_batch_rules *rules,
                     const struct topic_record *record);

#endif
