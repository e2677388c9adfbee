/* SPDX-License-Identifier: Apache-2.0 */
/* From the group's positions and the time of the marks to offsets. */
#include "ingest/readers/partial_start.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "ingest/kafka/kafka_topic.h"

/* Brokers answer for a position only when no transaction of its partition is open: that may take as long as a
 * transaction lives, and some seconds. While the coordinator of the group moves, they refuse at once. GIVE_UP_MS is
 * looked at between questions, so the last ones come later. */
enum { ASK_TIMEOUT_MS = 5000, PAUSE_MS = 500, GIVE_UP_MS = 40000 };

static err_t fail_positions(const char *topic, rd_kafka_resp_err_t error)
{
  FAIL(ERR_KAFKA_RETRY, "the positions in topic %s cannot be read: %s", topic, rd_kafka_err2str(error));
}

/* Ask for the group's positions, and for those of the time from which marks count.
 *
 * committed, marks  [same partitions], at least one: librdkafka refuses to ask for none
 */
static err_t ask_positions(rd_kafka_t *rk, int64_t remember_ms, rd_kafka_topic_partition_list_t *committed,
                           rd_kafka_topic_partition_list_t *marks)
{
  for (int i = 0; i < marks->cnt; i++)
    marks->elems[i].offset = clock_unix_ms() - remember_ms;
  rd_kafka_resp_err_t error = rd_kafka_committed(rk, committed, ASK_TIMEOUT_MS);
  if (!error)
    error = rd_kafka_offsets_for_times(rk, marks, ASK_TIMEOUT_MS);
  return error ? fail_positions(marks->elems[0].topic, error) : ERR_OK;
}

/* Note a partition, and set the offset where reading begins. */
static err_t find_one(rd_kafka_t *rk, rd_kafka_topic_partition_t *at, int64_t committed, int64_t marks,
                      struct partial_partition *out)
{
  int64_t first, end;
  rd_kafka_resp_err_t error = kafka_topic_bounds(rk, at->topic, at->partition, ASK_TIMEOUT_MS, &first, &end);

  if (error)
    return fail_positions(at->topic, error);
  if (committed < first || committed > end) /* no position, or that of a former topic */
    committed = first;
  if (marks < first || marks > committed) /* there are no records that are so new */
    marks = marks < 0 || marks > committed ? committed : first;
  at->offset = marks;
  *out = (struct partial_partition){
    .partition = at->partition,
    .committed = committed,
    .end_at_start = end,
    .next = marks,
  };
  log_info("partials_partition", "partition=%" PRId32 " from=%" PRId64 " committed=%" PRId64 " end=%" PRId64,
           at->partition, marks, committed, end);
  return ERR_OK;
}

static err_t find_all(rd_kafka_t *rk, int64_t remember_ms, rd_kafka_topic_partition_list_t *partitions,
                      struct partial_partition *out)
{
  rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(partitions);
  rd_kafka_topic_partition_list_t *marks = rd_kafka_topic_partition_list_copy(partitions);
  err_code_t err = partitions->cnt > 0 ? ask_positions(rk, remember_ms, committed, marks) : ERR_OK;

  for (int i = 0; i < partitions->cnt && err == ERR_OK; i++)
    err = find_one(rk, &partitions->elems[i], committed->elems[i].offset, marks->elems[i].offset, &out[i]);
  rd_kafka_topic_partition_list_destroy(committed);
  rd_kafka_topic_partition_list_destroy(marks);
  return err;
}

err_t partial_start_find(rd_kafka_t *rk, int64_t remember_ms, const _Atomic bool *is_stopping,
                         rd_kafka_topic_partition_list_t *partitions, struct partial_partition *out)
{
  int64_t give_up_ns = clock_now_ns() + GIVE_UP_MS * CLOCK_NS_PER_MS;

  bool is_said = false;
  err_code_t err;

  while ((err = find_all(rk, remember_ms, partitions, out)) == ERR_KAFKA_RETRY && !atomic_load(is_stopping)) {
    if (!is_said)
      log_warn("partials_positions", "reason=%s note=\"asked again\"", log_failure());
    is_said = true;
    if (clock_now_ns() >= give_up_ns)
      FAIL(ERR_KAFKA, "%s", err_message());
    clock_sleep_ns(PAUSE_MS * CLOCK_NS_PER_MS);
  }
  return err;
}
