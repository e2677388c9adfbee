/* SPDX-License-Identifier: Apache-2.0 */
/* The two queues of the query consumer, and a wait for both: the group's events, and the partitions' records. Private
 * to the files of the query reader. */
#ifndef INGEST_QUERY_QUEUES_H
#define INGEST_QUERY_QUEUES_H

#include <librdkafka/rdkafka.h>

#include "base/err.h"

struct query_queues {
  rd_kafka_queue_t *events;  /* the consumer's own queue: rebalances, commits, errors */
  rd_kafka_queue_t *records; /* records that the partitions have fetched */
  int wake_fd;               /* readable when one of the two queues is not empty */
};

err_t query_queues_open(rd_kafka_t *rk, struct query_queues *out);

/* Accepts queues that were not opened: all zeros. */
void query_queues_close(struct query_queues *q);

/* Wait until an empty queue gets something. A queue that was not empty before does not end the wait. */
void query_queues_wait(struct query_queues *q, int64_t wait_ns);

#endif
