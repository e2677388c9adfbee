/* SPDX-License-Identifier: Apache-2.0 */
/* The commits of a query consumer: soon after answers, one request at a time, and again when one has failed. Private to
 * ingest/. Thread: the query reader. */
#ifndef INGEST_QUERY_COMMITS_H
#define INGEST_QUERY_COMMITS_H

#include <librdkafka/rdkafka.h>

#include "ingest/readers/offset_tracker.h"

/* The interval bounds how many queries are answered twice after a crash. */
enum { QUERY_COMMITS_INTERVAL_MS = 20 };

struct query_commits {
  rd_kafka_t *rk;
  const char *topic;
  struct offset_tracker *tracker;
  int n_at_start; /* partitions of the topic when the group started at its end; 0: it did not, or nobody knows */
  int64_t due_ns;
  bool is_under_way;
  bool has_uncommitted; /* queries may be open, or answered and not committed */
};

/* Commit the committable offsets, and wait for the broker: for some seconds at most. */
void query_commits_wait(struct query_commits *c);

/* Commit them if it is time, without waiting. */
void query_commits_begin(struct query_commits *c, int64_t now_ns);

/* A commit has ended, perhaps with an error. Its offsets are then committed again later: otherwise a restart would
 * answer their queries again. */
void query_commits_end(struct query_commits *c, rd_kafka_resp_err_t error);

/* Commit all offsets again, next time: a commit under way may fail, and nobody would repeat it. */
void query_commits_repeat(struct query_commits *c);

#endif
