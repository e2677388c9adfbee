/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of item changes: decoded and checked records of the catalogue topic.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CATALOGUE_ITEM_BATCH_H
#define DAEMON_CATALOGUE_ITEM_BATCH_H

#include "base/region.h"
#include "daemon/config/unknown_spaces.h"
#include "engine/engine.h"
#include "ingest/catalogue_reader.h"

struct item_batch {
  struct item_change *changes; /* [capacity]; keys are borrowed from the records */
  size_t n;
  size_t capacity;
  struct region region; /* parts */
  struct unknown_spaces unknown; /* met since the start: not forgotten by a reset */
};

err_t item_batch_init(size_t capacity, struct item_batch *out);
void item_batch_fini(struct item_batch *b);
void item_batch_reset(struct item_batch *b);

/* Add a record, unless nothing of it is left. Returns an error of class REJECT, with the reason, for one that cannot be
 * used: then the batch is as before; ERR_MEMORY. */
err_t item_batch_add(struct item_batch *b, const struct engine *engine, enum unknown_policy policy,
                     const struct catalogue_record *record);

#endif
