/* SPDX-License-Identifier: Apache-2.0 */
/* An outlet: a Kafka producer with a thread of its own, so that no outlet waits for another.
 *
 * A message that a broker may still accept is sent again until it is accepted; an impatient outlet treats an absent
 * topic or broker as a refusal instead. `ended` is called exactly once for each message.
 */
#ifndef DAEMON_DELIVERY_OUTLET_H
#define DAEMON_DELIVERY_OUTLET_H

#include <stdatomic.h>

#include "daemon/health/pulse.h"
#include "ingest/kafka/sender.h"

struct outlet;

/* What the outlet keeps of a message. The owner embeds it in its own record, as all zeros at first. The record must
 * live until `ended` is called. */
struct outlet_item {
  struct outlet_item *next;    /* in the list of messages to send again */
  struct sender_message *copy; /* of a message to send again */
  unsigned n_unsure;           /* failures that may or may not be permanent */
  bool is_alone;               /* its batch was too large: send it in a batch of its own */
};

enum outlet_end {
  OUTLET_DELIVERED,
  OUTLET_REFUSED, /* no broker accepts this message */
  OUTLET_CLOSED,  /* the outlet was closed first */
  OUTLET_LOST,    /* the producer is lost, and every message with it */
};

struct outlet_config {
  const char *name;                  /* for the log; a literal */
  const struct kafka_layers *layers; /* copied; the properties outlive the outlet */
  bool is_patient;                   /* send again while the topic or its brokers are away */
  struct pulses *pulses;             /* they watch the thread; NULL if it may end while they are still checked */
  void *context;

  /* Report the end of a message to its owner.
   *
   * reason, message  with OUTLET_REFUSED: why, and what was sent; valid during the call
   *
   * Thread: the outlet's, the one that sends, or the one that closes.
   */
  void (*ended)(void *context, struct outlet_item *item, enum outlet_end end, const char *reason,
                const struct sender_message *message);

  /* Called at least ten times a second, perhaps before outlet_open() has returned; may be NULL. Thread: the outlet's.
   */
  void (*ticked)(void *context, struct outlet *outlet);
};

/* Open the producer and start the thread. Returns ERR_CONFIG for a property that librdkafka refuses. */
err_t outlet_open(const struct outlet_config *config, struct outlet **out);

/* Stop the thread, and end all remaining messages with OUTLET_CLOSED. */
void outlet_close(struct outlet **o);

/* Prepare for the first message to a topic: it would else wait for up to a second. Later producers of the outlet are
 * prepared for the same topic.
 *
 * topic  outlives the outlet
 *
 * Thread: any, before messages are sent. Blocks: up to a second, while no broker answers. */
void outlet_prepare(struct outlet *o, const char *topic);

/* Send a message. Its `opaque` is set here.
 *
 * Returns true if the outlet has the message: then `ended` is called once, perhaps before this returns. false: the
 * producer's queue is full.
 * Thread: any. Blocks: no.
 */
bool outlet_send(struct outlet *o, struct outlet_item *item, const struct sender_message *message);

/* Send a message. If the queue is full, a copy waits for room. The caller bounds the number of such messages. */
void outlet_send_later(struct outlet *o, struct outlet_item *item, const struct sender_message *message);

/* Messages that wait to be sent again. While there are many, callers should send no new ones. */
size_t outlet_n_waiting(const struct outlet *o);

/* Do messages wait because their topic or its brokers are away, or because we may not write there? Thread: any. */
bool outlet_is_away(struct outlet *o);

#endif
