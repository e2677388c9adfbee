/* SPDX-License-Identifier: Apache-2.0 */
/* Rates and durations of the last ten minutes, for the charts of the status page: a moment every five seconds. */
#ifndef DAEMON_HTTP_HISTORY_H
#define DAEMON_HTTP_HISTORY_H

#include <pthread.h>

#include "daemon/counters/counters.h"

enum { HISTORY_STEP_S = 5, HISTORY_MAX = 120 };

/* What was counted between the moment before and this one. Durations are those of two steps; they are 0 if nothing was
 * counted. */
struct moment {
  double queries_per_s, updates_per_s;
  double answer_p50_ms, answer_p99_ms;   /* from a query's timestamp to the delivery of its answer */
  double visible_p50_ms, visible_p99_ms; /* from a catalogue record's timestamp to its publication */
  double errors_per_s, letters_per_s;    /* answers with an error; dead letters */
  double lag_records;                    /* of the catalogue, at this moment */
};

struct history {
  pthread_mutex_t mutex;
  struct moment moments[HISTORY_MAX]; /* a ring */
  size_t n;                           /* moments ever added */
  /* Of the newest moment. Used by the thread that adds only. */
  int64_t at_ns;
  uint64_t n_queries, n_updates, n_errors, n_letters;
  struct hist_window answer_us, visible_us;
};

void history_init(struct history *h);

/* Is the next moment due? Thread: the one that adds. */
bool history_is_due(const struct history *h);

/* Add a moment. Thread: one. */
void history_add(struct history *h, const struct counters *counters, uint64_t lag_records);

/* Copy the moments, oldest first, and return their number.
 *
 * out  [HISTORY_MAX]
 *
 * Thread: any.
 */
size_t history_get(struct history *h, struct moment *out);

#endif
