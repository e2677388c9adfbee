/* SPDX-License-Identifier: Apache-2.0 */
/* From the tracker's offsets to requests of the consumer. */
#include "ingest/readers/query_commits.h"

#include "base/clock.h"
#include "base/log.h"
#include "ingest/kafka/kafka_group.h"
#include "ingest/readers/query_start.h"

enum { TIMEOUT_MS = 3000, PARTITIONS_MAX = 1024 };

void query_commits_repeat(struct query_commits *c)
{
  offset_tracker_tell_again(c->tracker);
}

void query_commits_end(struct query_commits *c, rd_kafka_resp_err_t error)
{
  if (!error || error == RD_KAFKA_RESP_ERR__NO_OFFSET)
    return;
  log_warn("query_commit", "error=%s", rd_kafka_err2name(error));
  query_commits_repeat(c);
  c->has_uncommitted = true;
}

/* List what can be committed. NULL: nothing. */
static rd_kafka_topic_partition_list_t *list_committable(const struct query_commits *c)
{
  struct position positions[PARTITIONS_MAX];
  size_t n = offset_tracker_committable(c->tracker, positions, PARTITIONS_MAX);

  if (n == 0)
    return NULL;
  rd_kafka_topic_partition_list_t *list = kafka_group_offsets(c->topic, positions, n);
  query_start_mark(list, c->n_at_start);
  return list;
}

void query_commits_wait(struct query_commits *c)
{
  rd_kafka_topic_partition_list_t *list = list_committable(c);

  if (!list)
    return;
  rd_kafka_resp_err_t error = kafka_group_commit(c->rk, list, TIMEOUT_MS);
  rd_kafka_topic_partition_list_destroy(list);
  query_commits_end(c, error);
}

/* Is a commit under way? One without an answer counts as failed after a while, and its offsets are committed again. */
static bool is_under_way(struct query_commits *c, int64_t now_ns)
{
  if (c->is_under_way && now_ns >= c->due_ns + TIMEOUT_MS * CLOCK_NS_PER_MS) {
    c->is_under_way = false;
    query_commits_repeat(c);
  }
  return c->is_under_way;
}

void query_commits_begin(struct query_commits *c, int64_t now_ns)
{
  if (now_ns < c->due_ns || is_under_way(c, now_ns))
    return;
  c->due_ns = now_ns + QUERY_COMMITS_INTERVAL_MS * CLOCK_NS_PER_MS;
  c->has_uncommitted = offset_tracker_n_held(c->tracker) > 0; /* what is open now may be committable next time */
  rd_kafka_topic_partition_list_t *list = list_committable(c);
  if (!list)
    return;
  rd_kafka_resp_err_t error = rd_kafka_commit(c->rk, list, true);
  rd_kafka_topic_partition_list_destroy(list);
  c->is_under_way = !error;
  query_commits_end(c, error);
}
