/* SPDX-License-Identifier: Apache-2.0 */
/* The counters and histograms of the daemon, one table row each. /status and /metrics are made from these tables, so a
 * new row shows up in both. Thread: any; all are atomic. */
#ifndef DAEMON_COUNTERS_H
#define DAEMON_COUNTERS_H

#include <stdatomic.h>

#include "base/hist.h"

/* Counters. Columns: field (also its name in /status), Prometheus name, help. */
#define COUNTERS_LIST(X)                                                                                             \
  X(applied, "sluice_items_applied_total", "Puts of items published")                                                \
  X(deleted, "sluice_items_deleted_total", "Deletes (tombstones) published")                                         \
  X(replayed, "sluice_items_replayed_total", "Catalogue records skipped because the store had already applied them") \
  X(dead_letters, "sluice_dead_letters_total", "Messages sent to the dead-letter topic")                               \
  X(batches, "sluice_batches_total", "Catalogue batches stored and published")                                       \
  X(discontinuities, "sluice_discontinuities_total", "Times that the catalogue topic did not continue the store")    \
  X(rebuilds, "sluice_rebuilds_total", "Rebuilds completed: a new catalogue replaced the served one")                \
  X(gaps, "sluice_embedded_broker_gaps_total",                                                                       \
    "Times that the embedded broker dropped records before they were read")                                          \
  X(damages, "sluice_catalogue_damages_total", "Damaged offsets found in catalogue partitions")                      \
  X(refused_full, "sluice_items_refused_full_total",                                                                 \
    "Puts of new items that had to wait because of catalogue.max_items")                                             \
  X(dead_letters_lost, "sluice_dead_letters_lost_total",                                                             \
    "Dead letters of the catalogue dropped because too many waited for delivery")                                    \
  X(queries, "sluice_queries_total", "Queries read from the query topic")                                            \
  X(answers, "sluice_answers_total", "Answers with hits")                                                            \
  X(errors, "sluice_error_answers_total", "Answers with an error")                                                   \
  X(refused, "sluice_refused_total", "Queries refused without a search: no room, or no time to meet the deadline")   \
  X(searches, "sluice_searches_total", "Batches of queries searched")                                                \
  X(undeliverable, "sluice_undeliverable_total",                                                                     \
    "Replies and dead letters given up because no broker accepted them")

/* Histograms of durations: microseconds in the field and in /status, seconds for Prometheus. Columns: field, name in
 * /status, Prometheus name, help. */
#define COUNTERS_HISTS(X)                                                                                              \
  X(visible_us, "visible", "sluice_visible_seconds", "Seconds from a catalogue record's timestamp to its publication") \
  X(queued_us, "queued", "sluice_queued_seconds", "Seconds between reading and searching a query")                     \
  X(search_us, "search", "sluice_search_seconds", "Seconds that the search of one batch of queries took")

struct counters {
#define COUNTERS_FIELD(field, name, help) _Atomic uint64_t field;
  COUNTERS_LIST(COUNTERS_FIELD)
#undef COUNTERS_FIELD
  _Atomic uint64_t dead_letters_waiting; /* sent, not delivered yet */
#define COUNTERS_HIST(field, name, prometheus, help) struct hist field;
  COUNTERS_HISTS(COUNTERS_HIST)
#undef COUNTERS_HIST
};

/* The same histograms, restricted to the last one to two minutes. */
struct counters_windows {
#define COUNTERS_WINDOW(field, name, prometheus, help) struct hist_window field;
  COUNTERS_HISTS(COUNTERS_WINDOW)
#undef COUNTERS_WINDOW
};

static inline void counters_add(_Atomic uint64_t *counter, uint64_t n)
{
  atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t counters_get(const _Atomic uint64_t *counter)
{
  return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
