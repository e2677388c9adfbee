/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the query consumer share; nobody else includes it. query_assignment.c gets partitions and gives
 * them up, query_reader_poll.c reads, query_reader.c opens and closes.
 *
 * Thread: the reader's.
 */
#ifndef INGEST_QUERY_READER_STATE_H
#define INGEST_QUERY_READER_STATE_H

#include <stdatomic.h>

#include "ingest/readers/former_member.h"
#include "ingest/readers/query_commits.h"
#include "ingest/readers/query_queues.h"
#include "ingest/readers/query_reader.h"

struct query_reader {
  rd_kafka_t *rk;
  char *topic;
  char *group;
  struct offset_tracker *tracker;
  struct query_queues queues;
  struct query_commits commits;
  rd_kafka_message_t *message; /* that of the last poll */
  int64_t events_due_ns;
  int64_t away_due_ns;
  uint64_t generation;
  _Atomic bool is_assigned;
  _Atomic bool is_topic_away;   /* true until the topic is back and assigned again */
  _Atomic(const char *) denied; /* see query_reader_denied() */
  uint64_t version;             /* kafka_renewal_version() when it was opened */
  bool keeps_partitions;        /* see query_reader_keep_partitions() */
  bool is_awaited;              /* see query_reader_is_awaited() */
  int n_awaited;                /* the partitions that the group waits for */
  int64_t give_up_ns;           /* when they are given up at the latest; 0: they are kept */
  bool starts_at_end;           /* see query_start.h */
  bool is_closing;
  int64_t wake_due_ns;
  char member[QUERY_MEMBER_MAX + 1];
  struct former_member former;
  bool is_standby;   /* another reader uses the tracker: the former one, or the next one */
  bool is_rejoining; /* the topic is back, but not assigned yet */
};

/* A value of `denied`: only partitions show that it is over. */
extern const char query_topic_denied[];

/* librdkafka's callback, of the thread that polls: the group gives partitions, or asks for them. */
void query_assignment_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t event,
                                   rd_kafka_topic_partition_list_t *partitions, void *opaque);

/* May offsets be committed? While the topic is away they may not: they mean nothing in a new topic. */
bool query_assignment_may_commit(const struct query_reader *r);

/* Commit what was answered, if that may be done, and wait for it. */
void query_assignment_commit(struct query_reader *r);

/* Give the partitions up that the group waits for, once their queries are answered or the time for that is over. */
void query_assignment_step(struct query_reader *r, int64_t now_ns);

/* Destroy the message of the last poll. */
void query_reader_release_message(struct query_reader *r);

#endif
