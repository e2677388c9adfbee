/* What leaves the daemon: answers and dead letters, through one producer, and its delivery thread.
 *
 * A query's offset may be committed once its reply has reached a broker: then the delivery thread tells the query
 * reader. Thread: delivery_reply() and delivery_dead_letter() any. They block while the producer's queue is full.
 */
#ifndef DAEMON_DELIVERY_H
#define DAEMON_DELIVERY_H

#include "daemon/alarm.h"
#include "daemon/counters.h"
#include "ingest/kafka_properties.h"
#include "ingest/query_reader.h"
#include "ingest/wire.h"

struct delivery;

err_t delivery_open(const struct kafka_layers *layers, struct counters *counters, struct delivery **out);

/* Wait until what was sent is reported, or it is time to give up. Thread: main. */
void delivery_drain(struct delivery *d);

/* Drain, then stop the thread. Whatever is not delivered by
 * then stays uncommitted, and is answered again after a restart. */
void delivery_close(struct delivery **d);

/* From now on reports of replies go to this reader, which must outlive the delivery; `alarm` is raised when a query can
 * be told neither its answer nor an error, so that it is answered after a restart. */
void delivery_attach(struct delivery *d, struct query_reader *queries, struct alarm *alarm);

/* Send the reply to a query.
 *
 * Returns ERR_OK: its ticket ends when a broker has it. ERR_KAFKA when it can never be sent (too large for the
 * producer, say), with the reason: then the ticket has not ended; send another reply, or delivery_abandon() it.
 */
struct delivery_reply {
  const char *topic;
  bool has_key;
  struct span key;
  struct span value;
  const char *error_topic; /* where the error goes, if the topic does not take the value; outlives the delivery */
  struct span error_value;
  enum wire_format format;
  uint32_t ticket;
};
err_t delivery_reply(struct delivery *d, const struct delivery_reply *reply);

/* End the ticket of a query that cannot be replied to at all. */
void delivery_abandon(struct delivery *d, uint32_t ticket);

/* Send a message that cannot be used, as it is, with headers that say where it came from and why. */
struct delivery_dead_letter {
  const char *topic; /* the dead-letter topic */
  bool has_key;
  struct span key;
  bool has_value;
  struct span value;
  struct span content_type; /* of the message; empty for none */
  const char *source_topic;
  int32_t partition;
  int64_t offset;
  const char *reason;
  bool is_query; /* of the query topic: it has a ticket */
  uint32_t ticket;
};
void delivery_dead_letter(struct delivery *d, const struct delivery_dead_letter *letter);

/* Wait until no dead letter of the catalogue is on its way: before their offsets are stored. Returns whether that is
 * so; false when the daemon is stopping and no broker took them in time: then their offsets must not be stored. */
bool delivery_wait_for_dead_letters(struct delivery *d);

/* The daemon is stopping: nobody waits for a broker beyond this time (clock_now_ns()). Thread: main. */
void delivery_give_up_at(struct delivery *d, int64_t ns);

#endif
