/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of one topic: a request for one topic may create it on some brokers, one for all does not. */
#include "ingest/kafka/kafka_topic.h"

#include "base/clock.h"
#include "ingest/kafka/kafka_client.h"

/* Offsets that brokers give for these times. */
enum { TIME_OF_END = -1, TIME_OF_FIRST = -2 };

rd_kafka_resp_err_t kafka_topic_metadata(rd_kafka_t *rk, const char *topic, int timeout_ms,
                                         const struct rd_kafka_metadata **out)
{
  rd_kafka_topic_t *handle = rd_kafka_topic_new(rk, topic, NULL);

  if (!handle)
    return rd_kafka_last_error();
  rd_kafka_resp_err_t error = rd_kafka_metadata(rk, 0, handle, out, timeout_ms);
  rd_kafka_topic_destroy(handle);
  return error;
}

rd_kafka_resp_err_t kafka_topic_n_partitions(rd_kafka_t *rk, const char *topic, int timeout_ms, int *out)
{
  const struct rd_kafka_metadata *metadata;
  rd_kafka_resp_err_t error = kafka_topic_metadata(rk, topic, timeout_ms, &metadata);

  if (error)
    return error;
  error = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  if (!error)
    *out = metadata->topics[0].partition_cnt;
  rd_kafka_metadata_destroy(metadata);
  return error;
}

/* Ask for the offset of a time. */
static rd_kafka_resp_err_t ask_offset(rd_kafka_t *rk, const char *topic, int32_t partition, int64_t time,
                                      int64_t deadline_ns, int64_t *out)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_t *at = rd_kafka_topic_partition_list_add(list, topic, partition);

  at->offset = time;
  rd_kafka_resp_err_t error = rd_kafka_offsets_for_times(rk, list, kafka_ms_until(deadline_ns));
  if (!error)
    error = at->err;
  if (!error)
    *out = at->offset;
  rd_kafka_topic_partition_list_destroy(list);
  return error;
}

rd_kafka_resp_err_t kafka_topic_bounds(rd_kafka_t *rk, const char *topic, int32_t partition, int timeout_ms,
                                       int64_t *first, int64_t *end)
{
  int64_t deadline_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;
  int64_t found = 0;
  rd_kafka_resp_err_t error = ask_offset(rk, topic, partition, TIME_OF_FIRST, deadline_ns, &found);

  if (!error)
    error = ask_offset(rk, topic, partition, TIME_OF_END, deadline_ns, end);
  if (!error)
    *first = found;
  return error;
}

bool kafka_topic_is_there(rd_kafka_t *rk, const char *topic, int timeout_ms)
{
  int n = 0;

  return !kafka_topic_n_partitions(rk, topic, timeout_ms, &n) && n > 0;
}

bool kafka_topic_has_controller(rd_kafka_t *rk, const struct rd_kafka_metadata *metadata, int timeout_ms)
{
  int32_t id = rd_kafka_controllerid(rk, timeout_ms);

  for (int i = 0; i < metadata->broker_cnt; i++) {
    if (metadata->brokers[i].id == id)
      return true;
  }
  return false;
}
