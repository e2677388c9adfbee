/* SPDX-License-Identifier: Apache-2.0 */
/* A producer that sends messages and a consumer's positions together: in one Kafka transaction, so that readers with
 * isolation.level=read_committed see all of them or none; or without transactions, the messages before the positions.
 *
 * Thread: the one that opened it.
 */
#ifndef INGEST_TRANSACTION_H
#define INGEST_TRANSACTION_H

#include "ingest/readers/partial_reader.h"
#include "ingest/kafka/sender.h"

struct transaction;

/* A message. The caller sets `fate` to SENDER_QUEUED at first. */
struct transaction_message {
  struct sender_message message; /* its `opaque` is set here */
  enum sender_fate fate;         /* SENDER_DELIVERED: it need not be sent again; others say why it failed */
  const char *reason;            /* of a failure; static */
};

/* Open a producer. Does not wait for the broker.
 *
 * id  transactional.id: no two producers that live have the same; NULL: no transactions
 */
err_t transaction_open(const struct kafka_layers *layers, const char *id, struct transaction **out);
void transaction_close(struct transaction **t);

/* Prepare for transactions: abort one that a former producer of the same id has left open, and fence it. Call it until
 * it succeeds, before anything is read that transactions depend on.
 *
 * Returns ERR_OK; ERR_KAFKA_RETRY when no broker answered in time; ERR_KAFKA. */
err_t transaction_init(struct transaction *t, int timeout_ms);

/* Send the messages that are not delivered yet, and commit the positions.
 *
 * positions  [n_positions] of the reader's group; none are committed without messages' success
 *
 * Returns ERR_OK: all are delivered; ERR_KAFKA_RETRY: the fates say which message failed and why. In a transaction none
 * is delivered then, and a message whose fate is SENDER_CLOSED was only aborted with the others; ERR_KAFKA when the
 * producer is lost: nobody knows what is delivered until another one is prepared. Blocks: up to some seconds. */
err_t transaction_send(struct transaction *t, struct transaction_message *messages, size_t n, struct partial_reader *r,
                       const struct position *positions, size_t n_positions);

/* Is the producer lost because another one has its id now? */
bool transaction_is_fenced(const struct transaction *t);

/* Has the broker this topic? Topics that it had are remembered, and those that were refused. Blocks: up to timeout_ms,
 * for a new one. */
bool transaction_has_topic(struct transaction *t, const char *topic, int timeout_ms);

/* Ask the brokers, whatever is remembered. Blocks: up to timeout_ms.
 *
 * Returns ERR_OK: one has the topic, or says something else of it; ERR_KAFKA_TOPIC: one says that there is no such
 * topic; ERR_KAFKA_RETRY: none has answered. */
err_t transaction_verify_topic(struct transaction *t, const char *topic, int timeout_ms);

/* Say that the topic is not there, for a while: nobody may write to it, or it was deleted. */
void transaction_refuse_topic(struct transaction *t, const char *topic);

/* Was the last transaction aborted because a broker opened none for a topic? It does not say for which one. */
bool transaction_lacked_topic(const struct transaction *t);

#endif
