/* SPDX-License-Identifier: Apache-2.0 */
/* The tracker of query offsets: an offset of the query topic may be committed once every query below it is answered.
 *
 * Queries of a partition begin in the order of its log, and are done in any order. Each query has a ticket, a small
 * number that fits a pointer. A partition that moved to another consumer is forgotten; its tickets then end without
 * effect.
 *
 * Thread: any; calls lock.
 */
#ifndef INGEST_OFFSET_TRACKER_H
#define INGEST_OFFSET_TRACKER_H

#include "base/err.h"
#include "base/item.h"

struct offset_tracker;

/* Open a tracker with one owner. */
err_t offset_tracker_open(struct offset_tracker **out);

/* Add an owner. Each owner closes the tracker once; the last one frees it. Returns the tracker. */
struct offset_tracker *offset_tracker_share(struct offset_tracker *t);
void offset_tracker_close(struct offset_tracker **t);

/* Begin a query that was read from the log. The offsets of a partition rise; one that does not is of another log, in a
 * topic that was deleted and created again: then the partition is forgotten, and begins there.
 *
 * is_replaced  there is another log; NULL: nobody wants to know */
err_t offset_tracker_begin(struct offset_tracker *t, int32_t partition, int64_t offset, uint32_t *ticket,
                           bool *is_replaced);

/* End a ticket. Call it when the broker has the answer, or the dead letter. */
void offset_tracker_done(struct offset_tracker *t, uint32_t ticket);

/* Forget all partitions, after they were revoked. */
void offset_tracker_forget(struct offset_tracker *t);

/* List the positions that may be committed and were not listed before. Returns their number.
 *
 * positions  [capacity]
 */
size_t offset_tracker_committable(struct offset_tracker *t, struct position *positions, size_t capacity);

/* List all positions that may be committed again, after a commit failed. */
void offset_tracker_tell_again(struct offset_tracker *t);

/* Return the number of queries that are begun and not done. */
size_t offset_tracker_n_open(struct offset_tracker *t);

/* Return the number of queries that take memory here: those not done, and those done after one that is not done. */
size_t offset_tracker_n_held(struct offset_tracker *t);

#endif
