/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for positions and ends, and committing the ends.
 *
 * A partition in which the group has no position is either one of those where the group starts, or it was added to the
 * topic later. The members of a group start at about the same time, and one may have committed before the next one
 * looks. So each position that the group commits says how many partitions the topic had at the start. */
#include "ingest/readers/query_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_group.h"
#include "ingest/kafka/kafka_topic.h"

/* For all requests together. A member may be silent for longer: librdkafka's main thread sends the heartbeats. */
enum { TIMEOUT_MS = 3000 };

/* What is stored with a position. */
#define START_FORMAT "start of %d partitions"
enum { START_BYTES = 48 };

bool query_start_is_end(const rd_kafka_conf_t *conf)
{
  char word[16];
  size_t n = sizeof word;

  if (rd_kafka_conf_get(conf, "auto.offset.reset", word, &n) != RD_KAFKA_CONF_OK)
    return false;
  return strcmp(word, "latest") == 0 || strcmp(word, "largest") == 0 || strcmp(word, "end") == 0; /* synonyms */
}

/* ---- What positions say ---- */

void query_start_mark(rd_kafka_topic_partition_list_t *list, int n_at_start)
{
  char text[START_BYTES];
  int n = snprintf(text, sizeof text, START_FORMAT, n_at_start);

  for (int i = 0; i < list->cnt && n_at_start > 0; i++) {
    rd_kafka_topic_partition_t *at = &list->elems[i];
    free(at->metadata); /* librdkafka frees it in the same way */
    at->metadata = strdup(text);
    at->metadata_size = at->metadata ? (size_t)n : 0;
  }
}

/* Return the number of partitions at the start. 0: the position does not say. */
static int mark_of(const rd_kafka_topic_partition_t *position)
{
  char text[START_BYTES] = "";
  int n;

  if (position->offset >= 0 && position->metadata && position->metadata_size < sizeof text)
    memcpy(text, position->metadata, position->metadata_size);
  return sscanf(text, START_FORMAT, &n) == 1 ? n : 0;
}

/* Return the number of partitions in which the group starts: all, if it has no position. */
static int find_start(const rd_kafka_topic_partition_list_t *all, bool may_start)
{
  bool has_positions = false;
  int n_at_start = 0;

  for (int i = 0; i < all->cnt; i++) {
    int n = mark_of(&all->elems[i]);
    has_positions |= all->elems[i].offset >= 0;
    n_at_start = n > n_at_start ? n : n_at_start;
  }
  return has_positions || !may_start ? n_at_start : all->cnt;
}

/* ---- Requests ---- */

/* Ask for the group's positions in all partitions of the topic. */
static rd_kafka_resp_err_t ask_all(rd_kafka_t *rk, const char *topic, int64_t deadline_ns,
                                   rd_kafka_topic_partition_list_t *all)
{
  int n = 0;
  rd_kafka_resp_err_t error = kafka_topic_n_partitions(rk, topic, kafka_ms_until(deadline_ns), &n);

  if (error)
    return error;
  rd_kafka_topic_partition_list_add_range(all, topic, 0, n - 1);
  error = rd_kafka_committed(rk, all, kafka_ms_until(deadline_ns));
  for (int i = 0; i < n && !error; i++)
    error = all->elems[i].err;
  return error;
}

/* Add a partition with its end. */
static rd_kafka_resp_err_t add_end(rd_kafka_t *rk, const rd_kafka_topic_partition_t *at, int64_t deadline_ns,
                                   rd_kafka_topic_partition_list_t *ends)
{
  int64_t first, end;
  rd_kafka_resp_err_t error =
      kafka_topic_bounds(rk, at->topic, at->partition, kafka_ms_until(deadline_ns), &first, &end);

  if (!error)
    rd_kafka_topic_partition_list_add(ends, at->topic, at->partition)->offset = end;
  return error;
}

/* List the ends of the partitions in which the group starts, and let those that were added begin at their beginning. */
static rd_kafka_resp_err_t find_ends(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *all, int n_at_start,
                                     int64_t deadline_ns, rd_kafka_topic_partition_list_t *partitions,
                                     rd_kafka_topic_partition_list_t *ends)
{
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;

  for (int i = 0; i < partitions->cnt && !error; i++) {
    rd_kafka_topic_partition_t *at = &partitions->elems[i];
    const rd_kafka_topic_partition_t *position =
        rd_kafka_topic_partition_list_find((rd_kafka_topic_partition_list_t *)(uintptr_t)all, at->topic, at->partition);
    if (position && position->offset >= 0)
      continue;
    if (at->partition < n_at_start)
      error = add_end(rk, at, deadline_ns, ends);
    else
      at->offset = RD_KAFKA_OFFSET_BEGINNING;
  }
  return error;
}

/* Another member may have the partitions already, because this one was slow. Then the group refuses the commit. */
static rd_kafka_resp_err_t prepare(rd_kafka_t *rk, bool may_start, rd_kafka_topic_partition_list_t *partitions,
                                   rd_kafka_topic_partition_list_t *all, rd_kafka_topic_partition_list_t *ends,
                                   int *n_at_start)
{
  int64_t deadline_ns = clock_now_ns() + TIMEOUT_MS * CLOCK_NS_PER_MS;
  rd_kafka_resp_err_t error = ask_all(rk, partitions->elems[0].topic, deadline_ns, all);

  if (error)
    return error;
  *n_at_start = find_start(all, may_start);
  error = find_ends(rk, all, may_start ? *n_at_start : 0, deadline_ns, partitions, ends);
  if (error || ends->cnt == 0)
    return error;
  query_start_mark(ends, *n_at_start);
  return kafka_group_commit(rk, ends, kafka_ms_until(deadline_ns));
}

int query_start_prepare(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *partitions, bool may_start)
{
  rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(partitions->cnt);
  rd_kafka_topic_partition_list_t *ends = rd_kafka_topic_partition_list_new(partitions->cnt);
  int n_at_start = 0;
  rd_kafka_resp_err_t error = prepare(rk, may_start, partitions, all, ends, &n_at_start);

  if (error)
    log_warn("query_start_not_committed", "error=%s", rd_kafka_err2name(error));
  else if (ends->cnt > 0)
    log_info("query_start", "partitions=%d", ends->cnt);
  rd_kafka_topic_partition_list_destroy(all);
  rd_kafka_topic_partition_list_destroy(ends);
  return n_at_start;
}
