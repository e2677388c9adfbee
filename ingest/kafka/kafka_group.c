/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of group members, from our types to librdkafka's. */
#include "ingest/kafka/kafka_group.h"

err_t kafka_group_subscribe(rd_kafka_t *rk, const char *topic)
{
  rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);

  rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
  rd_kafka_resp_err_t error = rd_kafka_subscribe(rk, topics);
  rd_kafka_topic_partition_list_destroy(topics);
  if (error)
    FAIL(ERR_KAFKA, "topic %s cannot be subscribed to: %s", topic, rd_kafka_err2str(error));
  return ERR_OK;
}

bool kafka_group_has_member(rd_kafka_t *rk)
{
  char *id = rd_kafka_memberid(rk);
  bool is_member = id && *id;

  if (id)
    rd_kafka_mem_free(rk, id);
  return is_member;
}

rd_kafka_topic_partition_list_t *kafka_group_offsets(const char *topic, const struct position *positions, size_t n)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n);

  for (size_t i = 0; i < n; i++)
    rd_kafka_topic_partition_list_add(list, topic, positions[i].partition)->offset = positions[i].next;
  return list;
}

rd_kafka_resp_err_t kafka_group_commit(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets, int timeout_ms)
{
  rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
  rd_kafka_resp_err_t error = rd_kafka_commit_queue(rk, offsets, queue, NULL, NULL);

  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
    error = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (event)
      rd_kafka_event_destroy(event);
  }
  rd_kafka_queue_destroy(queue);
  return error;
}
