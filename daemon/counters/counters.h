/* SPDX-License-Identifier: Apache-2.0 */
/* The counters and histograms of the daemon, one table row each. /status and /metrics are made from these tables, so a
 * new row shows up in both. Searches and the role merge have more (daemon/counters/search_counters.h,
 * daemon/merge/merge_counters.h). The daemon's threads add to all of these; `stats` of a store or a Kafka client are a
 * copy of what that knows of itself.
 *
 * Thread: any; all are atomic.
 */
#ifndef DAEMON_COUNTERS_COUNTERS_H
#define DAEMON_COUNTERS_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/hist.h"
#include "base/query.h"

/* Counters. Columns: field (also its name in /status), Prometheus name, help. */
#define COUNTERS_LIST(X)                                                                                               \
  X(applied, "sluice_items_applied_total", "Puts of items published")                                                  \
  X(deleted, "sluice_items_deleted_total", "Deletes (tombstones) published")                                           \
  X(swept, "sluice_items_swept_total", "Items deleted because they had been expired for long")                         \
  X(replayed, "sluice_items_replayed_total",                                                                           \
    "Catalogue records that changed nothing: the store had them, or a newer state of the key, or no such item")        \
  X(batches, "sluice_batches_total", "Catalogue batches stored and published")                                         \
  X(discontinuities, "sluice_discontinuities_total", "Times that the catalogue topic did not continue the store")      \
  X(rebuilds, "sluice_rebuilds_total", "Rebuilds completed: a new catalogue replaced the served one")                  \
  X(gaps, "sluice_embedded_broker_gaps_total", "Times that the embedded broker dropped records before they were read") \
  X(damages, "sluice_catalogue_damages_total", "Damaged offsets found in catalogue partitions")                        \
  X(schema_waits, "sluice_catalogue_schema_waits_total",                                                               \
    "Times that a catalogue partition began to wait for the schema registry")                                          \
  X(refused_full, "sluice_items_refused_full_total",                                                                   \
    "Puts of new items that had to wait because of catalogue.max_items")                                               \
  X(dead_letters_lost, "sluice_dead_letters_lost_total",                                                               \
    "Dead letters of the catalogue dropped because too many waited for delivery")                                      \
  X(queries, "sluice_queries_total", "Queries read from the query topic")                                              \
  X(answers, "sluice_answers_total", "Answers with hits, when sent")                                                   \
  X(refused, "sluice_refused_total", "Queries refused without a search: no room, or no time to meet the deadline")     \
  X(searches, "sluice_searches_total", "Batches of queries searched")                                                  \
  X(tried, "sluice_tried_queries_total", "Queries of the status page that were searched")                              \
  X(tries_refused, "sluice_tried_queries_refused_total",                                                               \
    "Queries of the status page refused or given up, because queries from Kafka or another one went first")            \
  X(background, "sluice_background_queries_total", "Background queries that were searched")                            \
  X(filtered, "sluice_filtered_queries_total", "Queries with a filter that were searched")                             \
  X(filtered_items, "sluice_filtered_items_total", "Items of the space, summed over the queries with a filter")        \
  X(filtered_admitted, "sluice_filtered_admitted_items_total",                                                         \
    "Items admitted, summed over the queries with a filter")                                                           \
  X(seen_records, "sluice_seen_records_total", "Records read from the seen topic")                                     \
  X(seen_queries, "sluice_seen_queries_total", "Searched queries that left out what a user has seen")                  \
  X(shadow_records_lost, "sluice_model_shadow_records_lost_total",                                                     \
    "Comparisons of generations that models.shadow_topic did not take")                                                \
  X(spans, "sluice_spans_total", "Spans of traced queries that the collector took")                                    \
  X(undeliverable, "sluice_undeliverable_total", "Replies and dead letters given up because no broker accepted them")

/* What is wrong with a dead letter. */
enum counters_letter {
  LETTER_UNREADABLE,    /* the message cannot be decoded */
  LETTER_UNUSABLE,      /* an item that no space can use */
  LETTER_UNKNOWN_SPACE, /* catalogue.unknown_spaces refuses it */
  LETTER_TOO_LARGE,
  LETTER_NO_REPLY, /* a query whose answer no broker takes */
  COUNTERS_LETTERS,
};
enum { COUNTERS_ERRORS = QUERY_ERRORS, COUNTERS_PLANS = QUERY_PLANS };

/* Why spans are dropped. */
enum counters_span_drop {
  SPAN_DROP_FULL,    /* too many queries are traced */
  SPAN_DROP_AWAY,    /* the collector cannot be reached, or cannot keep up */
  SPAN_DROP_REFUSED, /* it does not take them */
  COUNTERS_SPAN_DROPS,
};

/* Counters by a word, which /metrics shows as a label, and /status added up. Columns: field (also its name in /status),
 * number of words, Prometheus name, label, help. The words are in daemon/http/metrics.c. */
#define COUNTERS_BY_WORD(X)                                                                                          \
  X(dead_letters, COUNTERS_LETTERS, "sluice_dead_letters_total", "reason", "Messages sent to the dead-letter topic") \
  X(errors, COUNTERS_ERRORS, "sluice_error_answers_total", "code", "Answers with an error")                          \
  X(filter_plans, COUNTERS_PLANS, "sluice_filter_plans_total", "plan",                                               \
    "Queries with a filter, by how they were searched")                                                              \
  X(spans_dropped, COUNTERS_SPAN_DROPS, "sluice_spans_dropped_total", "reason", "Spans that the collector did not get")

/* Histograms of durations: microseconds in the field and in /status, seconds for Prometheus. Columns: field, name in
 * /status, Prometheus name, help. */
#define COUNTERS_PLAIN_HISTS(X)                                                                                        \
  X(visible_us, "visible", "sluice_visible_seconds", "Seconds from a catalogue record's timestamp to its publication") \
  X(canary_us, "canary", "sluice_canary_visible_seconds",                                                              \
    "Seconds from writing a canary to the epoch that has seen it")                                                     \
  X(seen_us, "seen", "sluice_seen_read_seconds", "Seconds that reading what a user has seen took")                     \
  X(queued_us, "queued", "sluice_queued_seconds", "Seconds between reading and searching a query")                     \
  X(answer_us, "answer", "sluice_answer_seconds", "Seconds from a query's timestamp to the delivery of its answer")

/* With that of all searches, which /metrics has by space and method (daemon/counters/search_counters.h). */
#define COUNTERS_HISTS(X) \
  COUNTERS_PLAIN_HISTS(X) \
  X(search_us, "search", "", "")

struct counters {
#define COUNTERS_FIELD(field, name, help) _Atomic uint64_t field;
  COUNTERS_LIST(COUNTERS_FIELD)
#undef COUNTERS_FIELD
#define COUNTERS_WORDS(field, n, name, label, help) _Atomic uint64_t field[n];
  COUNTERS_BY_WORD(COUNTERS_WORDS)
#undef COUNTERS_WORDS
  _Atomic uint64_t dead_letters_waiting; /* sent, not delivered yet */
  _Atomic int64_t canary_written_ns;     /* when the newest canary that is visible was written; 0: there are none */
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

/* Add up a counter by a word. */
static inline uint64_t counters_sum(const _Atomic uint64_t *counter, size_t n)
{
  uint64_t sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += counters_get(&counter[i]);
  return sum;
}

#endif
