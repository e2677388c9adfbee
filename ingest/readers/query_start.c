/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for positions and ends, and committing the ends.
 *
 * A partition in which the group has no position is either one of those where the group starts, or it was added to the
 * topic later. The members of a group start at about the same time, and the first may commit before the next one looks.
 * So a position that is a start says how many partitions the topic had. */
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

/* What is stored with a position that is a start. */
#define START_FORMAT "start of %d partitions"
enum { START_BYTES = 48 };

bool query_start_take_end(rd_kafka_conf_t *conf)
{
  char word[16], reason[128];
  size_t n = sizeof word;

  if (rd_kafka_conf_get(conf, "auto.offset.reset", word, &n) != RD_KAFKA_CONF_OK)
    return false;
  bool is_end = strcmp(word, "latest") == 0 || strcmp(word, "largest") == 0 || strcmp(word, "end") == 0; /* synonyms */
  if (is_end)
    rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", reason, sizeof reason);
  return is_end;
}

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

/* How many partitions had the topic when the group started? 0: the position is no start. */
static int partitions_at_start(const rd_kafka_topic_partition_t *position)
{
  char text[START_BYTES] = "";
  int n;

  if (position->offset >= 0 && position->metadata && position->metadata_size < sizeof text)
    memcpy(text, position->metadata, position->metadata_size);
  return sscanf(text, START_FORMAT, &n) == 1 ? n : 0;
}

/* Does the group start in this partition? If it has positions and no start is left among them, it started long ago. */
static bool starts_in(const rd_kafka_topic_partition_list_t *all, int32_t partition)
{
  bool has_positions = false, is_at_start = false;

  for (int i = 0; i < all->cnt; i++) {
    const rd_kafka_topic_partition_t *position = &all->elems[i];
    if (position->offset >= 0 && position->partition == partition)
      return false;
    is_at_start |= partition < partitions_at_start(position);
    has_positions |= position->offset >= 0;
  }
  return is_at_start || !has_positions;
}

static void keep_starts(const rd_kafka_topic_partition_list_t *all, rd_kafka_topic_partition_list_t *list)
{
  for (int i = list->cnt - 1; i >= 0; i--) {
    if (!starts_in(all, list->elems[i].partition))
      rd_kafka_topic_partition_list_del_by_idx(list, i);
  }
}

static rd_kafka_resp_err_t find_ends(rd_kafka_t *rk, int n_partitions, rd_kafka_topic_partition_list_t *list,
                                     int64_t deadline_ns)
{
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  char text[START_BYTES];
  int n = snprintf(text, sizeof text, START_FORMAT, n_partitions);

  for (int i = 0; i < list->cnt && !error; i++) {
    rd_kafka_topic_partition_t *at = &list->elems[i];
    int64_t first;
    error = rd_kafka_query_watermark_offsets(rk, at->topic, at->partition, &first, &at->offset,
                                             kafka_ms_until(deadline_ns));
    free(at->metadata);
    at->metadata = strdup(text);
    at->metadata_size = at->metadata ? (size_t)n : 0;
  }
  return error;
}

/* Another member may have the partitions already, because this one was slow. Then the group refuses the commit. */
static rd_kafka_resp_err_t commit_ends(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int64_t deadline_ns)
{
  rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(list->cnt);
  rd_kafka_resp_err_t error = ask_all(rk, list->elems[0].topic, deadline_ns, all);

  if (!error)
    keep_starts(all, list);
  if (!error)
    error = find_ends(rk, all->cnt, list, deadline_ns);
  if (!error && list->cnt > 0)
    error = kafka_group_commit(rk, list, kafka_ms_until(deadline_ns));
  rd_kafka_topic_partition_list_destroy(all);
  return error;
}

void query_start_commit(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *partitions)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(partitions);
  rd_kafka_resp_err_t error = commit_ends(rk, list, clock_now_ns() + TIMEOUT_MS * CLOCK_NS_PER_MS);

  if (error)
    log_warn("query_start_not_committed", "error=%s", rd_kafka_err2name(error));
  else if (list->cnt > 0)
    log_info("query_start", "partitions=%d", list->cnt);
  rd_kafka_topic_partition_list_destroy(list);
}
