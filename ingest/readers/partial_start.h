/* SPDX-License-Identifier: Apache-2.0 */
/* Where the consumer of parts begins to read its partitions. Private to ingest/. Thread: the reader's. */
#ifndef INGEST_PARTIAL_START_H
#define INGEST_PARTIAL_START_H

#include <librdkafka/rdkafka.h>

#include <stdatomic.h>

#include "base/err.h"

struct partial_partition {
  int32_t partition;
  int64_t committed;    /* the group's position; the first offset if it has none */
  int64_t end_at_start; /* when it was assigned: at first that of what was committed, see has_marks() */
  bool knows_end;       /* that is the end of all its records */
  bool was_fetched;     /* since it was assigned: librdkafka keeps the end that it knew before */
  int64_t next;         /* after the last record that was read */
};

/* Find where to begin, for the marks of the last `remember_ms`. Asks again if brokers do not answer: the partitions
 * cannot be read before their positions are known, and the group waits for the assignment.
 *
 * partitions  that were assigned; their offsets are set
 * out         [partitions->cnt]
 *
 * Returns ERR_OK; ERR_KAFKA when brokers do not answer; ERR_KAFKA_RETRY when they do not, and the daemon stops.
 */
err_t partial_start_find(rd_kafka_t *rk, int64_t remember_ms, const _Atomic bool *is_stopping,
                         rd_kafka_topic_partition_list_t *partitions, struct partial_partition *out);

#endif
