/* SPDX-License-Identifier: Apache-2.0 */
/* A position of a topic as stores keep it. Apart from store.h because the store of items and the seen store share it.
 */
#ifndef STORE_STORE_POSITION_H
#define STORE_STORE_POSITION_H

#include "base/item.h"

/* Where the store stands in a partition. The last applied record is kept with it: a topic that was deleted and created
 * again has another record at that offset. */
struct store_position {
  struct position at;        /* at.next: the first offset not yet applied */
  int64_t last_offset;       /* offset of the last applied record, -1 if there is none */
  uint64_t last_digest;      /* digest of that record, computed by the caller */
  int64_t last_timestamp_ms; /* timestamp of that record */
  int64_t complete_unix_ms;  /* all records that the partition had at this time have been read, or else reading began at
                              * this time; 0: unknown */
};

/* Hold a position back: it gets the offsets of `hold`, and stays as complete as it is. What lies between has been read,
 * and is only read again. */
static inline void store_position_hold_back(struct store_position *position, const struct store_position *hold)
{
  int64_t complete_unix_ms = position->complete_unix_ms;

  *position = *hold;
  position->complete_unix_ms = complete_unix_ms;
}

#endif
