/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for positions and ends, and committing the ends. */
#include "ingest/readers/query_start.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_group.h"

/* For all requests together. A member may be silent for longer: librdkafka's main thread sends the heartbeats. */
enum { TIMEOUT_MS = 3000 };

bool query_start_is_end(const rd_kafka_conf_t *conf)
{
  char word[16];
  size_t n = sizeof word;

  if (rd_kafka_conf_get(conf, "auto.offset.reset", word, &n) != RD_KAFKA_CONF_OK)
    return false;
  return strcmp(word, "latest") == 0 || strcmp(word, "largest") == 0 || strcmp(word, "end") == 0; /* synonyms */
}

/* Ask for the group's positions, and keep only the partitions that have none. */
static rd_kafka_resp_err_t keep_new(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int64_t deadline_ns)
{
  rd_kafka_resp_err_t error = rd_kafka_committed(rk, list, kafka_ms_until(deadline_ns));

  for (int i = list->cnt - 1; i >= 0 && !error; i--) {
    error = list->elems[i].err;
    if (list->elems[i].offset >= 0)
      rd_kafka_topic_partition_list_del_by_idx(list, i);
  }
  return error;
}

static rd_kafka_resp_err_t find_ends(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int64_t deadline_ns)
{
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;

  for (int i = 0; i < list->cnt && !error; i++) {
    rd_kafka_topic_partition_t *at = &list->elems[i];
    int64_t first;
    error = rd_kafka_query_watermark_offsets(rk, at->topic, at->partition, &first, &at->offset,
                                             kafka_ms_until(deadline_ns));
  }
  return error;
}

/* Another member may have the partitions already, because this one was slow. Then the group refuses the commit. */
static rd_kafka_resp_err_t commit_ends(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int64_t deadline_ns)
{
  rd_kafka_resp_err_t error = keep_new(rk, list, deadline_ns);

  if (!error)
    error = find_ends(rk, list, deadline_ns);
  if (!error && list->cnt > 0)
    error = kafka_group_commit(rk, list, kafka_ms_until(deadline_ns));
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
