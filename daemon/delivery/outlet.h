/* SPDX-License-Identifier: Apache-2.0 */
/* One way out of the daemon: a producer with a thread of its own, so that no outlet waits for another.
 *
 * What a broker may still take is sent again, for as long as it takes (or not at all, where the owner has something
 * better to do with it). The owner hears of each message's end exactly once.
 */
#ifndef DAEMON_DELIVERY_OUTLET_H
#define DAEMON_DELIVERY_OUTLET_H

#include <stdatomic.h>

#include "daemon/pulse.h"
#include "ingest/sender.h"

struct outlet;

/* Part of the owner's record of a message, all zeros at first; the owner keeps it until the message's end. */
struct outlet_item {
  struct outlet_item *next;    /* in the list of those that wait to be sent again */
  struct sender_message *copy; /* of one that waits */
  unsigned n_unsure;           /* failures of which nobody knows whether they pass */
  bool is_alone;               /* too large together with others: sent in a batch of its own */
};

enum outlet_end {
  OUTLET_DELIVERED,
  OUTLET_REFUSED, /* no broker takes this message */
  OUTLET_CLOSED,  /* the outlet was closed before any did */
  OUTLET_LOST,    /* the producer is lost, and every message with it */
};

struct outlet_config {
  const char *name; /* for the log; a literal */
  const struct kafka_layers *layers; /* copied; the properties outlive the outlet */
  bool is_patient; /* sends again while the topic or its brokers are away; else that is a refusal */
  struct pulses *pulses; /* where its thread beats, if the outlet outlives them; else NULL */
  void *context;

  /* The end of a message.
   *
   * reason, message  where it was refused: why, and what was sent; valid during the call
   *
   * Thread: the outlet's, the one that sends, or the one that closes.
   */
  void (*ended)(void *context, struct outlet_item *item, enum outlet_end end, const char *reason,
                const struct sender_message *message);

  void (*ticked)(void *context); /* at least ten times a second, in the outlet's thread; may be NULL */
};

/* Returns ERR_CONFIG for a property that librdkafka refuses. */
err_t outlet_open(const struct outlet_config *config, struct outlet **out);

/* Stop the thread and end with OUTLET_CLOSED whatever is still on its way. */
void outlet_close(struct outlet **o);

/* Send a message; its `opaque` is set here.
 *
 * Returns whether the outlet has it: then `ended` is called once, perhaps before this returns. false: the queue is
 * full.
 * Thread: any. Blocks: no.
 */
bool outlet_send(struct outlet *o, struct outlet_item *item, const struct sender_message *message);

/* The same; where the queue is full a copy waits for room. The caller sees to it that these are bounded. */
void outlet_send_later(struct outlet *o, struct outlet_item *item, const struct sender_message *message);

/* Messages that wait to be sent again: while there are many, nobody should add to them. */
size_t outlet_n_waiting(const struct outlet *o);

#endif
