/* A batch of item changes: decoded and checked records of the catalogue topic. What cannot be used goes to the dead
 * letters with its reason, and its neighbours go on.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_ITEM_BATCH_H
#define DAEMON_ITEM_BATCH_H

#include "daemon/delivery.h"
#include "engine/engine.h"
#include "ingest/catalogue_reader.h"

struct item_batch {
  struct item_change *changes; /* [capacity]; keys are borrowed from the records */
  size_t n;
  size_t capacity;
  struct region region; /* parts */
};

err_t item_batch_init(size_t capacity, struct item_batch *out);
void item_batch_fini(struct item_batch *b);
void item_batch_reset(struct item_batch *b);

/* Add a record. Returns ERR_OK whether it could be used or went to the dead letters; ERR_MEMORY. */
err_t item_batch_add(struct item_batch *b, const struct engine *engine, struct delivery *delivery, const char *topic,
                     const char *dead_letter_topic, const struct catalogue_record *record);

#endif
