/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to topics that queries name, through producers of their own.
 *
 * Such a topic may be missing, without a leader, or not ours to write; a client may name another one with each query.
 * So everything is bounded: the time that a reply waits for its broker, the replies on their way to one topic and in
 * all, and the topics that a producer knows. librdkafka never forgets a topic: when a producer knows too many, the next
 * one takes over, and the former is closed once nothing is on its way through it.
 */
#ifndef DAEMON_DELIVERY_REPLY_TOPICS_H
#define DAEMON_DELIVERY_REPLY_TOPICS_H

#include "daemon/delivery/outlet.h"

enum { REPLY_TOPICS_MAX = 1000, REPLY_TOPICS_IN_FLIGHT_MAX = 10000, REPLY_TOPIC_IN_FLIGHT_MAX = 1000 };

struct reply_topics;
struct reply_topic;

/* Part of the owner's record of a reply, all zeros at first. */
struct reply_topics_item {
  struct outlet_item item;
  struct reply_topic *topic;
};

struct reply_topics_config {
  const struct kafka_layers *layers; /* the properties outlive this */
  uint64_t timeout_ms;               /* how long a reply waits for its broker */
  void *context;
  /* As of an outlet; OUTLET_REFUSED also when the time was up. */
  void (*ended)(void *context, struct reply_topics_item *item, enum outlet_end end, const char *reason);
};

err_t reply_topics_open(const struct reply_topics_config *config, struct reply_topics **out);
void reply_topics_close(struct reply_topics **r);

/* Send a reply to the topic that the message names; its `opaque` is set here.
 *
 * Returns NULL when it is taken: then `ended` is called once, perhaps before this returns. Else why it is not, as a
 * sentence: static, or valid until the calling thread's next failure.
 * Thread: any. Blocks: no.
 */
const char *reply_topics_send(struct reply_topics *r, struct reply_topics_item *item,
                              const struct sender_message *message);

/* Topics that the producer in use knows, and producers that are open. For tests. */
void reply_topics_count(struct reply_topics *r, size_t *n_topics, size_t *n_producers);

#endif
