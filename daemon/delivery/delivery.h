/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves the daemon: answers, replies to topics that queries name, and dead letters, each through a producer and a
 * thread of its own.
 *
 * A query's offset may be committed once its reply has reached a broker: then the query reader is told. What no broker
 * takes is replaced by something smaller: an answer by an error in the configured topic, that by an error without key
 * and id, that by a dead letter. Only when that is refused too is a query given up: it is logged and counted.
 */
#ifndef DAEMON_DELIVERY_DELIVERY_H
#define DAEMON_DELIVERY_DELIVERY_H

#include "daemon/alarm.h"
#include "daemon/counters.h"
#include "daemon/delivery/dead_letters.h"
#include "ingest/kafka_properties.h"
#include "ingest/query_reader.h"
#include "ingest/wire.h"

struct delivery;

/* Texts and properties outlive the delivery. */
struct delivery_config {
  const struct kafka_layers *layers;
  const char *query_topic; /* where queries come from: for their dead letters */
  const char *answer_topic;
  const char *dead_letter_topic;
  bool has_reply_topics;     /* queries may name topics */
  uint64_t reply_timeout_ms; /* how long a reply waits for the broker of a topic that its query names */
  struct counters *counters;
  struct pulses *pulses; /* where its threads beat; may be NULL */
};

err_t delivery_open(const struct delivery_config *config, struct delivery **out);

/* Wait until what was sent is reported, or it is time to give up. Thread: main. */
void delivery_drain(struct delivery *d);

/* Drain, then stop the threads. Whatever is not delivered by
 * then stays uncommitted, and is answered again after a restart. */
void delivery_close(struct delivery **d);

/* From now on reports of replies go to this reader, which must outlive the delivery; `alarm` is raised when the
 * producer of answers is lost: what was not delivered is answered after a restart. */
void delivery_attach(struct delivery *d, struct query_reader *queries, struct alarm *alarm);

/* Send the reply to a query. Its ticket ends when a broker has it, or has what replaces it.
 *
 * Thread: any. Blocks: while the queue of answers is full. Memory: copied.
 */
struct delivery_reply {
  const char *topic; /* that the query names; NULL: the configured one */
  bool has_key;
  struct span key;
  struct span id; /* of the query, and its space: for an error in place of the reply */
  struct span space;
  struct span value;
  enum wire_format format;
  uint32_t ticket;
  int32_t partition; /* where the query is */
  int64_t offset;
};
void delivery_reply(struct delivery *d, const struct delivery_reply *reply);

/* A reply cannot even be made, for want of memory: its ticket stays open and the alarm is raised. Thread: any. */
void delivery_fail(struct delivery *d, err_code_t err);

/* Send a message that cannot be used, as it is, with headers that say where it came from and why.
 *
 * Returns whether the letter was taken (dead_letters.h). false: too many are on their way; of a letter of the catalogue
 * only. One of a query is then given up, logged and counted.
 * Thread: any. Blocks: no.
 */
bool delivery_dead_letter(struct delivery *d, const struct delivery_dead_letter *letter);

/* Whether a reply can be sent now without waiting for a broker, as far as one can tell. Thread: any. */
bool delivery_has_room(struct delivery *d);

/* Sleep a little. Returns false once it is time to give up. */
bool delivery_may_wait(struct delivery *d);

/* The daemon is stopping: nobody waits for a broker beyond this time (clock_now_ns()). Thread: main. */
void delivery_give_up_at(struct delivery *d, int64_t ns);

#endif
