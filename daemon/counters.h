/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon counts. One row each: field, Prometheus name, help. Thread: any; all are atomic. */
#ifndef DAEMON_COUNTERS_H
#define DAEMON_COUNTERS_H

#include <stdatomic.h>

#include "base/hist.h"

#define COUNTERS_LIST(X)                                                                                     \
  X(applied, "sluice_items_applied_total", "Item changes published, tombstones not included")                \
  X(deleted, "sluice_items_deleted_total", "Tombstones published")                                           \
  X(replayed, "sluice_items_replayed_total", "Records skipped since the store had them already")             \
  X(dead_letters, "sluice_dead_letters_total", "Messages put to the dead-letter topic")                      \
  X(batches, "sluice_batches_total", "Catalogue batches committed and published")                            \
  X(discontinuities, "sluice_discontinuities_total", "Times the catalogue topic did not continue the store") \
  X(rebuilds, "sluice_rebuilds_total", "Catalogues that took the place of another after such a rebuild")        \
  X(gaps, "sluice_embedded_broker_gaps_total", "Times the embedded broker had dropped records before they were read") \
  X(damages, "sluice_catalogue_damages_total", "Damaged places in the broker's log")                         \
  X(refused_full, "sluice_items_refused_full_total", "Puts of new items that found no room (catalogue.max_items)") \
  X(dead_letters_lost, "sluice_dead_letters_lost_total",                                                     \
    "Dead letters of the catalogue that were not sent, since too many waited")                               \
  X(queries, "sluice_queries_total", "Queries taken from the query topic")                                   \
  X(answers, "sluice_answers_total", "Answers with hits")                                                    \
  X(errors, "sluice_error_answers_total", "Answers with an error")                                           \
  X(refused, "sluice_refused_total", "Queries refused unsearched: for their deadline, or for want of room")   \
  X(searches, "sluice_searches_total", "Batches of queries searched")                                        \
  X(undeliverable, "sluice_undeliverable_total", "Replies and dead letters given up since no broker takes them")

/* Durations, in microseconds. One row each: field, name in /status, Prometheus name, help. */
#define COUNTERS_HISTS(X)                                                                                          \
  X(visible_us, "visible", "sluice_visible_seconds", "From a catalogue record's time to its publication")          \
  X(queued_us, "queued", "sluice_queued_seconds", "Queries, from the consumer to the search")                      \
  X(search_us, "search", "sluice_search_seconds", "One batch of queries, searched")

struct counters {
#define COUNTERS_FIELD(field, name, help) _Atomic uint64_t field;
  COUNTERS_LIST(COUNTERS_FIELD)
#undef COUNTERS_FIELD
  _Atomic uint64_t dead_letters_waiting; /* on their way now */
#define COUNTERS_HIST(field, name, prometheus, help) struct hist field;
  COUNTERS_HISTS(COUNTERS_HIST)
#undef COUNTERS_HIST
};

/* The same histograms, as far as they were filled lately. */
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
