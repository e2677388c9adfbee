/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to topics that queries name, through producers of their own.
 *
 * Such a topic may be missing, without a leader, or closed to us, and a client may name a new one in each query. So
 * everything is bounded: how long a reply waits for its broker, the replies on their way to one topic and to all
 * topics, and the topics that a producer knows. librdkafka never forgets a topic. When a producer knows too many, a new
 * one takes over, and the old one is closed once its last reply has ended.
 */
#ifndef DAEMON_DELIVERY_REPLY_TOPICS_H
#define DAEMON_DELIVERY_REPLY_TOPICS_H

#include "daemon/delivery/outlet.h"

enum { REPLY_TOPICS_MAX = 1000, REPLY_TOPICS_IN_FLIGHT_MAX = 10000, REPLY_TOPIC_IN_FLIGHT_MAX = 1000 };

struct reply_topics;
struct reply_topic;

/* What this module keeps of a reply. The owner embeds it in its own record, as all zeros at first. */
struct reply_topics_item {
  struct outlet_item item;
  struct reply_topic *topic;
};

struct reply_topics_config {
  const struct kafka_layers *layers; /* copied; the properties outlive this */
  uint64_t timeout_ms;               /* how long a reply waits for its broker */
  void *context;
  /* As in outlet_config. A reply whose time is up ends with OUTLET_REFUSED. */
  void (*ended)(void *context, struct reply_topics_item *item, enum outlet_end end, const char *reason);
};

err_t reply_topics_open(const struct reply_topics_config *config, struct reply_topics **out);
void reply_topics_close(struct reply_topics **r);

/* Send a reply to the topic that the message names. Its `opaque` is set here.
 *
 * Returns NULL if the reply was accepted: then `ended` is called once, perhaps before this returns. Otherwise returns
 * the reason as a sentence, which is static or valid until the calling thread's next failure.
 * Thread: any. Blocks: no.
 */
const char *reply_topics_send(struct reply_topics *r, struct reply_topics_item *item,
                              const struct sender_message *message);

/* Count the topics that the current producer knows, and the open producers. For tests. */
void reply_topics_count(struct reply_topics *r, size_t *n_topics, size_t *n_producers);

#endif
