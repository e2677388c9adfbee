/* SPDX-License-Identifier: Apache-2.0 */
/* The topic of comparisons (models.shadow_topic): one JSON record for each compared query, with both answers.
 *
 * Nobody waits for these records. Those that the topic does not take are counted as lost, and logged.
 *
 * Thread: the shadow thread.
 */
#ifndef DAEMON_SHADOW_SHADOW_TOPIC_H
#define DAEMON_SHADOW_SHADOW_TOPIC_H

#include "daemon/counters/counters.h"
#include "daemon/setup/kafka_setup.h"
#include "daemon/shadow/shadow_measures.h"
#include "ingest/kafka/renewal_wait.h"
#include "ingest/kafka/sender.h"

/* It must not move while it is open. */
struct shadow_topic {
  struct kafka_layers layers;
  const char *name;
  struct counters *counters;
  struct sender *sender; /* NULL: there is no topic, or its producer cannot be opened yet */
  struct renewal_wait renewal;
};

/* Open the producer, if the configuration names a topic. */
err_t shadow_topic_open(const struct config *config, const struct kafka_setup *kafka, struct counters *counters,
                        struct shadow_topic *out);

/* Wait half a second for records on their way, and close the producer. */
void shadow_topic_close(struct shadow_topic *t);

/* What a record says. */
struct shadow_record {
  bool has_key;
  struct span key; /* of the query's record */
  struct span id;
  uint32_t k;
  struct shadow_measures measures;
  const struct answer *current, *shadow;
};

/* Make the value of a record. It lives in the region. Returns ERR_WIRE if an answer cannot be written; ERR_MEMORY. */
err_t shadow_topic_encode(const struct shadow_record *record, struct region *region, struct span *out);

/* Send a record, if there is a topic. Blocks: no. */
void shadow_topic_send(struct shadow_topic *t, const struct shadow_record *record, struct region *region);

/* Learn what became of the records. Waits up to timeout_ms if some are on their way. Returns whether there are any. */
bool shadow_topic_poll(struct shadow_topic *t, int timeout_ms);

#endif
