/* SPDX-License-Identifier: Apache-2.0 */
/* Which offsets of the query topic may be committed: those below which every query has been answered.
 *
 * Queries are begun in order of their partition's log and done in any order. Each begun query has a ticket, a small
 * number that fits a pointer. A partition that was lost to another consumer is forgotten: its tickets end without
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

/* A query was taken from the log. Offsets of a partition must rise. */
err_t offset_tracker_begin(struct offset_tracker *t, int32_t partition, int64_t offset, uint32_t *ticket);

/* It was answered (or put to the dead letters), and the broker has that. Ends the ticket. */
void offset_tracker_done(struct offset_tracker *t, uint32_t ticket);

/* Forget all partitions: they were revoked. */
void offset_tracker_forget(struct offset_tracker *t);

/* Positions that may be committed and were not told before: written to positions [capacity]; returns how many. */
size_t offset_tracker_committable(struct offset_tracker *t, struct position *positions, size_t capacity);

/* A commit has failed: tell everything that may be committed again. */
void offset_tracker_tell_again(struct offset_tracker *t);

/* Queries begun and not done. */
size_t offset_tracker_n_open(struct offset_tracker *t);

/* Queries that take memory here: begun and not done, or done behind one that is not. */
size_t offset_tracker_n_held(struct offset_tracker *t);

#endif
