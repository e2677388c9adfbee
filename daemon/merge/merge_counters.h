/* SPDX-License-Identifier: Apache-2.0 */
/* The counters and histograms of the role merge, besides struct counters. Thread: any; all are atomic. */
#ifndef DAEMON_MERGE_MERGE_COUNTERS_H
#define DAEMON_MERGE_MERGE_COUNTERS_H

#include <stdatomic.h>

#include "base/hist.h"

/* Counters. Columns: field (also its name in /status), Prometheus name, help. */
#define MERGE_COUNTERS(X)                                                                                     \
  X(parts, "sluice_merge_parts_total", "Parts of answers read from the partials topic")                       \
  X(duplicates, "sluice_merge_duplicate_parts_total", "Parts dropped because the shard's part was there")     \
  X(late, "sluice_merge_late_parts_total", "Parts dropped because their query was answered")                  \
  X(unusable, "sluice_merge_unusable_records_total", "Records of the partials topic that cannot be decoded")  \
  X(incomplete, "sluice_merge_incomplete_answers_total", "Answers with hits from which shards are missing")   \
  X(heartbeats, "sluice_merge_heartbeats_total", "Heartbeats of shards")                                      \
  X(batches, "sluice_merge_batches_total", "Batches of answers sent, each in a transaction if there are any") \
  X(retries, "sluice_merge_batch_retries_total", "Batches that were not delivered and sent again")

/* Gauges. */
#define MERGE_GAUGES(X)                                                       \
  X(open_queries, "sluice_merge_open_queries", "Queries that wait for parts") \
  X(open_bytes, "sluice_merge_open_bytes", "Memory of the parts that wait")   \
  X(remembered, "sluice_merge_remembered_queries", "Answered queries that are not answered again")

/* Histograms: microseconds, seconds for Prometheus. */
#define MERGE_HISTS(X)                                                                                                \
  X(wait_us, "sluice_merge_wait_seconds", "Seconds from a query's first part to its last, or to the end of its wait") \
  X(send_us, "sluice_merge_send_seconds", "Seconds that sending a batch of answers took")

struct merge_counters {
#define MERGE_FIELD(field, name, help) _Atomic uint64_t field;
  MERGE_COUNTERS(MERGE_FIELD)
  MERGE_GAUGES(MERGE_FIELD)
#undef MERGE_FIELD
#define MERGE_HIST(field, name, help) struct hist field;
  MERGE_HISTS(MERGE_HIST)
#undef MERGE_HIST
};

/* The durations of the last one to two minutes. Main turns the windows. */
struct merge_windows {
#define MERGE_WINDOW(field, name, help) struct hist_window field;
  MERGE_HISTS(MERGE_WINDOW)
#undef MERGE_WINDOW
  struct hist_window answer_us;
};

#endif
