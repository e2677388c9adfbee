/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the catalogue thread as /status and /metrics show it. The thread writes it a few times a second, any
 * thread may read it.
 *
 * Thread: any, between lock and unlock.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_REPORT_H
#define DAEMON_CATALOGUE_CATALOGUE_REPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "daemon/catalogue/unknown_names.h"

enum { REPORT_CAUSE_BYTES = 256, REPORT_TEXT_BYTES = 512 };

/* How far one partition of the catalogue topic was read. */
struct report_partition {
  int64_t next;            /* first offset not yet applied */
  int64_t read;            /* first offset not yet read: later ones may be applied while new items wait for room */
  int64_t end;             /* end offset of all records; -1: not known yet */
  int64_t committed_end;   /* end offset of the records that no open transaction holds back; -1: not known yet */
  int64_t behind_since_ns; /* age of the oldest record that is not applied, at most; 0: there is none */
  int64_t at_end_ns;       /* when all its records were last known to be applied; 0: never since the start */
  int64_t complete_ns;     /* all that it had then was applied before the start; 0: unknown */
  bool is_foreign;         /* another shard reads it: nothing else here has a meaning */
  bool is_logged;          /* an event has said that records are held back */
};

struct report_rebuild {
  bool is_under_way;
  uint64_t number;
  uint64_t n_items;      /* in the new catalogue */
  uint64_t n_live_items; /* in the served catalogue */
  bool waits;            /* for `sluicectl rebuild accept` */
  char reason[REPORT_TEXT_BYTES];
};

struct catalogue_report {
  pthread_mutex_t mutex;
  struct report_partition *partitions; /* [n], index is the partition */
  size_t n;
  size_t capacity;
  struct report_rebuild rebuild;
  struct unknown_names unknown_spaces;
  struct unknown_names unknown_attributes;
  size_t n_open_letters;
  bool is_away;                    /* the topic is not read now, so nobody knows its end */
  char problem[REPORT_TEXT_BYTES]; /* why the catalogue is not live; "" when it is */
};

void catalogue_report_init(struct catalogue_report *r);
void catalogue_report_fini(struct catalogue_report *r);
void catalogue_report_lock(struct catalogue_report *r);
void catalogue_report_unlock(struct catalogue_report *r);

/* Set the number of partitions; new ones are zeros. Call between lock and unlock. Returns ERR_MEMORY: then nothing has
 * changed. */
err_t catalogue_report_resize(struct catalogue_report *r, size_t n);

/* Are at most `max` records of all partitions not applied yet? False while the end of a partition is not known. Locks
 * the report itself. */
bool catalogue_report_is_near(struct catalogue_report *r, uint64_t max);

/* Set the reason why the catalogue is not live; "" if it is. Locks the report itself. */
void catalogue_report_problem(struct catalogue_report *r, const char *text);

#endif
