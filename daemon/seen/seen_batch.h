/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of records of the seen topic, decoded. They are stored in one transaction.
 *
 * Thread: seen.
 */
#ifndef DAEMON_SEEN_SEEN_BATCH_H
#define DAEMON_SEEN_SEEN_BATCH_H

#include "base/region.h"
#include "base/seen_change.h"
#include "ingest/readers/topic_reader.h"

/* All zeros: empty. */
struct seen_batch {
  struct seen_change *changes; /* [n]; users are borrowed from the records */
  size_t n;
  size_t capacity;
  struct region region; /* decoded items */
  size_t value_bytes;   /* of all records, bad ones too: the reader holds them as long as the batch */
};

void seen_batch_fini(struct seen_batch *b);
void seen_batch_reset(struct seen_batch *b);

/* Return the memory that the records take, decoded and as they came. */
size_t seen_batch_bytes(const struct seen_batch *b);

/* Add a record.
 *
 * Returns an error of class REJECT, with the reason, when the record cannot be used; ERR_MEMORY. On error nothing
 * is added but the size of the value.
 */
err_t seen_batch_add(struct seen_batch *b, const struct topic_record *record);

#endif
