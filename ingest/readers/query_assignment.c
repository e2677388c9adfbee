/* SPDX-License-Identifier: Apache-2.0 */
/* The partitions of a query consumer: taking them, and giving them up once their queries are answered. */
#include "base/clock.h"
#include "base/log.h"
#include "ingest/readers/query_reader_state.h"
#include "ingest/readers/query_start.h"

/* How long the queries that were taken may take to be answered before the partitions are given up. */
enum { DRAIN_MS = 1000 };

const char query_topic_denied[] = "not allowed to read the query topic";

bool query_assignment_may_commit(const struct query_reader *r)
{
  return !r->is_standby && !atomic_load(&r->is_topic_away);
}

void query_assignment_commit(struct query_reader *r)
{
  if (query_assignment_may_commit(r))
    query_commits_wait(&r->commits);
}

/* Forward the partitions' records to a queue of ours. librdkafka keeps the forwarding when it starts to fetch and
 * removes it when it stops. So it is set at each assignment, before the fetch begins. Records of an earlier assignment
 * that are still in the queue have an older version; librdkafka drops them when they are popped. */
static void forward_records(struct query_reader *r, const rd_kafka_topic_partition_list_t *partitions)
{
  for (int i = 0; i < partitions->cnt; i++) {
    rd_kafka_queue_t *queue =
        rd_kafka_queue_get_partition(r->rk, partitions->elems[i].topic, partitions->elems[i].partition);
    rd_kafka_queue_forward(queue, r->queues.records);
    rd_kafka_queue_destroy(queue);
  }
}

/* Any assignment, even an empty one, shows that the group may be used; only partitions show that the topic may be read.
 */
static void note_allowed(struct query_reader *r, bool has_partitions)
{
  if (has_partitions || atomic_load(&r->denied) != query_topic_denied)
    atomic_store(&r->denied, NULL);
}

/* Forget the assignment: other members read its queries, or this one does so again. */
static void forget(struct query_reader *r)
{
  if (!r->is_standby)
    offset_tracker_forget(r->tracker);
}

static void take_assignment(struct query_reader *r, rd_kafka_topic_partition_list_t *partitions)
{
  bool is_away = atomic_load(&r->is_topic_away);

  note_allowed(r, partitions->cnt > 0);
  forward_records(r, partitions);
  if (r->starts_at_end && partitions->cnt > 0)
    r->commits.n_at_start = query_start_prepare(r->rk, partitions, !is_away);
  rd_kafka_assign(r->rk, partitions);
  if (!is_away) {
    r->generation += partitions->cnt > 0;
  } else if (r->is_rejoining || partitions->cnt > 0) {
    forget(r);
    r->is_rejoining = false;
    atomic_store(&r->is_topic_away, false);
  }
  atomic_store(&r->is_assigned, true);
  log_info("query_partitions", "topic=%s assigned=%d", r->topic, partitions->cnt);
}

/* A commit under way may fail, and nobody would repeat it: so all positions are committed again. The queries that were
 * not answered are another member's from now on; but nobody reads again those of a topic that is away. */
static void give_up_assignment(struct query_reader *r, int n_partitions)
{
  bool is_lost = rd_kafka_assignment_lost(r->rk); /* the group has excluded this member, such as one that was silent */

  if (!is_lost) {
    query_commits_repeat(&r->commits);
    query_assignment_commit(r);
  }
  forget(r);
  rd_kafka_assign(r->rk, NULL);
  r->generation += !atomic_load(&r->is_topic_away);
  atomic_store(&r->is_assigned, false);
  log_info("query_partitions", "topic=%s %s=%d", r->topic, is_lost ? "lost" : "revoked", n_partitions);
}

void query_assignment_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t event,
                                   rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
  struct query_reader *r = opaque;
  bool is_assigned = event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;

  if (!is_assigned && !r->is_closing && !rd_kafka_assignment_lost(rk)) {
    r->is_awaited = true;
    r->n_awaited = partitions->cnt;
    if (!r->keeps_partitions)
      query_reader_give_up(r);
    return;
  }
  if (is_assigned)
    take_assignment(r, partitions);
  else
    give_up_assignment(r, partitions->cnt);
}

void query_reader_give_up(struct query_reader *r)
{
  if (!r->give_up_ns)
    r->give_up_ns = clock_now_ns() + DRAIN_MS * CLOCK_NS_PER_MS;
}

void query_assignment_step(struct query_reader *r, int64_t now_ns)
{
  if (!r->give_up_ns || (offset_tracker_n_open(r->tracker) > 0 && now_ns < r->give_up_ns))
    return;
  r->give_up_ns = 0;
  r->is_awaited = false;
  give_up_assignment(r, r->n_awaited);
}
