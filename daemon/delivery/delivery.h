/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that the daemon sends: answers, replies to topics that queries name, and dead letters. Each of the three
 * has a producer and a thread of its own.
 *
 * A query's offset may be committed once a broker has its reply: then its ticket is ended in the offset tracker. If no
 * broker accepts the reply, something smaller replaces it: an error in the answer topic, then an error without key and
 * id, then a dead letter. If that is refused too, the query is given up, logged and counted.
 *
 * A reply on its way takes a record from a pool (reply_pool.h). The steady state allocates nothing.
 */
#ifndef DAEMON_DELIVERY_DELIVERY_H
#define DAEMON_DELIVERY_DELIVERY_H

#include "daemon/counters/counters.h"
#include "daemon/delivery/dead_letters.h"
#include "daemon/delivery/reply_pool.h"
#include "daemon/health/alarm.h"
#include "daemon/tracing/tracing.h"
#include "ingest/kafka/kafka_properties.h"
#include "ingest/kafka/trace_headers.h"
#include "ingest/wire/wire.h"

struct delivery;

/* Texts, properties and objects outlive the delivery. */
struct delivery_config {
  const struct kafka_layers *layers; /* copied; the properties that they point to are not */
  const char *query_topic;           /* named in the dead letters of queries */
  const char *answer_topic;          /* of a shard: the partials topic */
  const char *dead_letter_topic;
  uint32_t shard, n_shards;  /* of a shard, which sends heartbeats; else 0 */
  bool has_reply_topics;     /* queries may name topics */
  uint64_t reply_timeout_ms; /* how long a reply to a topic that its query names waits for a broker */
  struct counters *counters;
  struct offset_tracker *tracker; /* told when a query is done; NULL if no replies are sent */
  struct tracing *tracing; /* ends the traces of queries when their replies are delivered; NULL: there are none */
  struct alarm *alarm;     /* raised when the producer of answers is lost; its pulses watch the threads. May be NULL */
};

err_t delivery_open(const struct delivery_config *config, struct delivery **out);

/* Wait until every reply and dead letter is delivered, or until the time to give up. Thread: the one that closes. */
void delivery_drain(struct delivery *d);

/* Drain, then stop the threads. The tickets of undelivered replies stay open: their queries are not committed, and are
 * answered again after a restart. */
void delivery_close(struct delivery **d);

struct delivery_reply {
  enum reply_route route;
  const char *own_topic; /* with REPLY_TO_OWN_TOPIC: the query's reply_topic */
  bool has_key;
  struct span key;
  struct span id;    /* of the query, for an error in place of the reply */
  struct span space; /* likewise */
  struct span head;  /* of a shard: the head of its part (ingest/wire/wire_partial.h), for an error; else empty */
  struct span value;
  struct trace_headers trace; /* headers of the query, which the reply has too */
  struct query_trace *traced; /* notes for the query's spans; the delivery takes them over. NULL: it is not traced */
  enum wire_format format;
  uint32_t ticket;
  int32_t partition; /* of the query's record */
  int64_t offset;
  int64_t asked_ns;  /* when the query was written, by clock_now_ns(); 0: the answer's delivery is not measured */
  bool never_blocks; /* without room, a copy waits in memory: the caller bounds the number of such replies */
};

/* Send the reply to a query. Its ticket ends when a broker has the reply or what replaces it.
 *
 * Thread: any. Blocks: while the queue of answers is full, unless `never_blocks`. Memory: copied.
 */
void delivery_send_reply(struct delivery *d, const struct delivery_reply *reply);

/* Raise the alarm because a reply could not be made for lack of memory. Its ticket stays open. Thread: any. */
void delivery_fail(struct delivery *d, err_code_t err);

/* Send an unusable message unchanged, with headers that say where it came from and what is wrong with it.
 *
 * Returns true if the letter was accepted (dead_letters.h). If too many letters are on their way, a letter of the
 * catalogue is refused: false. A letter of a query is given up, logged and counted: true.
 * Thread: any. Blocks: no.
 */
bool delivery_send_dead_letter(struct delivery *d, const struct dead_letter *letter);

/* Can a reply probably be sent now without waiting for a broker? Thread: any. */
bool delivery_has_room(struct delivery *d);

/* Prepare for the first answer, before queries are read. Thread: main. Blocks: up to a second, while no broker answers.
 */
void delivery_prepare(struct delivery *d);

/* Do answers wait because the configured answer topic or its brokers are away, or because we may not write there?
 * Thread: any. */
bool delivery_is_answer_topic_away(struct delivery *d);

/* The daemon is stopping: from this time on (clock_now_ns()) nothing waits for a broker. Thread: any, while
 * the delivery is open. */
void delivery_give_up_at(struct delivery *d, int64_t ns);

#endif
