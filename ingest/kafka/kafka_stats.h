/* SPDX-License-Identifier: Apache-2.0 */
/* What librdkafka says about the connections of our clients (statistics.interval.ms). It is kept for each client by its
 * name. When a client is replaced, those of the new one take the place of the old ones.
 *
 * Thread: any.
 */
#ifndef INGEST_KAFKA_STATS_H
#define INGEST_KAFKA_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Clients and brokers beyond these are left out. */
enum { KAFKA_STATS_CLIENTS = 8, KAFKA_STATS_BROKERS = 64 };

struct kafka_broker_stats {
  int32_t id;
  bool is_connected;
  double round_trip_s; /* mean of the last interval; 0: there was no request */
  uint64_t n_waiting;  /* requests that are to be sent, or that wait for their answers */
  uint64_t n_tx_errors;
  uint64_t n_rx_errors;
  uint64_t n_timeouts;
};

struct kafka_client_stats {
  const char *client;
  uint64_t n_messages; /* records in the client's queues */
  size_t n_brokers;
  struct kafka_broker_stats brokers[KAFKA_STATS_BROKERS];
};

/* Copy the newest statistics of all clients that have some.
 *
 * out  [KAFKA_STATS_CLIENTS]
 *
 * Returns their number.
 */
size_t kafka_stats_get(struct kafka_client_stats *out);

#endif
