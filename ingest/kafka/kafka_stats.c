/* SPDX-License-Identifier: Apache-2.0 */
/* The newest statistics of each client, taken from the JSON that librdkafka makes. */
#include "ingest/kafka/kafka_stats.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ingest/kafka/kafka_client.h"

struct slot {
  char handle[128]; /* librdkafka's name of the client that has the name now */
  struct kafka_client_stats stats;
  bool has_stats;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct slot slots[KAFKA_STATS_CLIENTS]; /* in the order of their first clients */

/* Return the slot of a name, or else a free one; NULL: there is none. */
static struct slot *slot_of(const char *client)
{
  for (size_t i = 0; i < KAFKA_STATS_CLIENTS; i++) {
    if (!slots[i].stats.client || strcmp(slots[i].stats.client, client) == 0)
      return &slots[i];
  }
  return NULL;
}

void kafka_stats_watch(const rd_kafka_t *rk, const char *client)
{
  if (!client)
    return;
  pthread_mutex_lock(&mutex);
  struct slot *slot = slot_of(client);
  if (slot) {
    slot->stats.client = client;
    snprintf(slot->handle, sizeof slot->handle, "%s", rd_kafka_name(rk));
  }
  pthread_mutex_unlock(&mutex);
}

static uint64_t count_of(const json_t *object, const char *name)
{
  json_int_t value = json_integer_value(json_object_get(object, name));

  return value > 0 ? (uint64_t)value : 0;
}

/* Return the broker's row; a new one if it has none; NULL if there is no room. librdkafka has a connection of its own
 * to the coordinator of a group, with the same id. */
static struct kafka_broker_stats *row_of(struct kafka_client_stats *stats, int32_t id)
{
  for (size_t i = 0; i < stats->n_brokers; i++) {
    if (stats->brokers[i].id == id)
      return &stats->brokers[i];
  }
  if (stats->n_brokers == KAFKA_STATS_BROKERS)
    return NULL;
  stats->brokers[stats->n_brokers] = (struct kafka_broker_stats){ .id = id };
  return &stats->brokers[stats->n_brokers++];
}

static void take_broker(struct kafka_client_stats *stats, const json_t *broker)
{
  json_int_t id = json_integer_value(json_object_get(broker, "nodeid"));
  const char *state = json_string_value(json_object_get(broker, "state"));
  double round_trip_s = (double)count_of(json_object_get(broker, "rtt"), "avg") / 1e6;
  struct kafka_broker_stats *row;

  if (id < 0 || !(row = row_of(stats, (int32_t)id))) /* an address to begin with, not a broker */
    return;
  row->is_connected |= state && strcmp(state, "UP") == 0;
  if (round_trip_s > row->round_trip_s)
    row->round_trip_s = round_trip_s;
  row->n_waiting += count_of(broker, "outbuf_cnt") + count_of(broker, "waitresp_cnt");
  row->n_tx_errors += count_of(broker, "txerrs");
  row->n_rx_errors += count_of(broker, "rxerrs");
  row->n_timeouts += count_of(broker, "req_timeouts");
}

/* Count the records that were fetched and not taken yet. */
static uint64_t count_fetched(json_t *topics)
{
  const char *name, *number;
  json_t *topic, *partition;
  uint64_t n = 0;

  json_object_foreach(topics, name, topic) json_object_foreach(json_object_get(topic, "partitions"), number, partition)
      n += count_of(partition, "fetchq_cnt");
  return n;
}

static void take_stats(struct kafka_client_stats *stats, json_t *root)
{
  const char *name;
  json_t *broker;

  stats->n_messages = count_of(root, "msg_cnt") + count_fetched(json_object_get(root, "topics"));
  stats->n_brokers = 0;
  json_object_foreach(json_object_get(root, "brokers"), name, broker) take_broker(stats, broker);
}

static int on_stats(rd_kafka_t *rk, char *text, size_t n, void *opaque)
{
  json_t *root = json_loadb(text, n, 0, NULL);

  (void)opaque;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < KAFKA_STATS_CLIENTS && root; i++) {
    if (strcmp(slots[i].handle, rd_kafka_name(rk)) != 0)
      continue;
    take_stats(&slots[i].stats, root);
    slots[i].has_stats = true;
  }
  pthread_mutex_unlock(&mutex);
  json_decref(root);
  return 0; /* librdkafka frees the text */
}

void kafka_stats_ask(rd_kafka_conf_t *conf)
{
  rd_kafka_conf_set(conf, "statistics.interval.ms", "10000", NULL, 0);
  rd_kafka_conf_set_stats_cb(conf, on_stats);
}

size_t kafka_stats_get(struct kafka_client_stats *out)
{
  size_t n = 0;

  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < KAFKA_STATS_CLIENTS; i++) {
    if (slots[i].has_stats)
      out[n++] = slots[i].stats;
  }
  pthread_mutex_unlock(&mutex);
  return n;
}
