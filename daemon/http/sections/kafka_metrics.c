/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics with the labels `client` and `broker`: one table row each. */
#include "daemon/http/sections/kafka_metrics.h"

#include <inttypes.h>

#include "daemon/http/print/metric_print.h"
#include "ingest/kafka/kafka_stats.h"

static double connected(const struct kafka_broker_stats *b)
{
  return b->is_connected;
}

static double round_trip(const struct kafka_broker_stats *b)
{
  return b->round_trip_s;
}

static double waiting(const struct kafka_broker_stats *b)
{
  return (double)b->n_waiting;
}

static double tx_errors(const struct kafka_broker_stats *b)
{
  return (double)b->n_tx_errors;
}

static double rx_errors(const struct kafka_broker_stats *b)
{
  return (double)b->n_rx_errors;
}

static double timeouts(const struct kafka_broker_stats *b)
{
  return (double)b->n_timeouts;
}

static const struct metric {
  const char *name;
  const char *type;
  const char *help;
  double (*value)(const struct kafka_broker_stats *b);
} metrics[] = {
  { "sluice_kafka_connected", "gauge", "1 if the client is connected to the broker, otherwise 0", connected },
  { "sluice_kafka_round_trip_seconds", "gauge", "Mean seconds from a request to its answer in the last interval",
    round_trip },
  { "sluice_kafka_waiting_requests", "gauge", "Requests not sent or not answered yet", waiting },
  { "sluice_kafka_tx_errors_total", "counter", "Requests that could not be sent", tx_errors },
  { "sluice_kafka_rx_errors_total", "counter", "Answers that could not be received", rx_errors },
  { "sluice_kafka_request_timeouts_total", "counter", "Requests that were not answered in time", timeouts },
};

static void print_brokers(const struct metric *metric, const struct kafka_client_stats *client, FILE *out)
{
  for (size_t i = 0; i < client->n_brokers; i++) {
    const struct kafka_broker_stats *broker = &client->brokers[i];
    char id[16];
    snprintf(id, sizeof id, "%" PRId32, broker->id);
    struct metric_labels labels = { { { "client", client->client }, { "broker", id } } };
    metric_print_real(out, metric->name, &labels, metric->value(broker));
  }
}

void kafka_metrics_print(FILE *out)
{
  struct kafka_client_stats clients[KAFKA_STATS_CLIENTS];
  size_t n = kafka_stats_get(clients);

  for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
    metric_print_head(out, metrics[m].name, metrics[m].type, metrics[m].help);
    for (size_t i = 0; i < n; i++)
      print_brokers(&metrics[m], &clients[i], out);
  }
  metric_print_head(out, "sluice_kafka_queued_messages", "gauge", "Records in the queues of the client");
  for (size_t i = 0; i < n; i++) {
    struct metric_labels labels = { { { "client", clients[i].client } } };
    metric_print_count(out, "sluice_kafka_queued_messages", &labels, clients[i].n_messages);
  }
}
