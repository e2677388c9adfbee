/* SPDX-License-Identifier: Apache-2.0 */
/* How far the seen topic was read. The seen thread writes it, all others read it.
 *
 * Thread: any.
 */
#ifndef DAEMON_SEEN_SEEN_PROGRESS_H
#define DAEMON_SEEN_SEEN_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "base/item.h"

enum { SEEN_PROBLEM_BYTES = 512 };

struct seen_partition {
  int64_t next;    /* all records below it are stored. Never falls while it is the same topic */
  int64_t end;     /* end of the partition; -1: not known yet */
  bool is_read_on; /* it was read beyond `next`, or to its end, since reading resumed */
};

struct seen_progress {
  pthread_mutex_t mutex;
  struct seen_partition *partitions; /* [n], index is the partition */
  size_t n;
  size_t capacity;
  char problem[SEEN_PROBLEM_BYTES]; /* why the topic is not being read; "" if it is */
  _Atomic bool has_caught_up;       /* the topic was read to where it ended at the start */
  _Atomic uint64_t version;         /* raised with every change of the above */
};

void seen_progress_init(struct seen_progress *p);
void seen_progress_fini(struct seen_progress *p);

/* Lock the fields to read or to change them. After a change, note it before the unlock. */
void seen_progress_lock(struct seen_progress *p);
void seen_progress_unlock(struct seen_progress *p);
void seen_progress_note_change(struct seen_progress *p);

/* Set the number of partitions, while it is locked. Returns ERR_MEMORY: then nothing has changed. */
err_t seen_progress_resize(struct seen_progress *p, size_t n);

/* Forget how far the topic was read: it is another one. Locks. */
void seen_progress_forget(struct seen_progress *p);

/* Set whether the topic was read to where it ended at the start. Locks. */
void seen_progress_set_caught_up(struct seen_progress *p, bool has_caught_up);

/* Set why the topic is not being read; "": it is. Locks. */
void seen_progress_set_problem(struct seen_progress *p, const char *problem);

/* Were all these positions reached, and the end that the topic had at the start? */
bool seen_progress_has_reached(struct seen_progress *p, const struct position *positions, size_t n);

/* Find the first of these positions that was not reached. Returns false if all were.
 *
 * have  how far its partition was read; -1: there is no such partition
 */
bool seen_progress_find_missing(struct seen_progress *p, const struct position *positions, size_t n,
                                struct position *wanted, int64_t *have);

#endif
