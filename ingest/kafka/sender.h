/* SPDX-License-Identifier: Apache-2.0 */
/* A producer that reports the fate of each message. A message that is sent again after a failure may be written after
 * later ones; the property enable.idempotence keeps the order. Keys, values and headers are copied.
 *
 * Thread: any for sender_send() and sender_try(). One thread calls sender_poll(), which runs the reports.
 */
#ifndef INGEST_SENDER_H
#define INGEST_SENDER_H

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka/kafka_properties.h"

struct sender;

struct sender_header {
  const char *name;
  struct span value;
};

struct sender_message {
  const char *topic;
  bool has_partition; /* false: the partition follows from the key */
  int32_t partition;
  bool has_key;
  struct span key;
  bool has_value; /* false: a tombstone */
  struct span value;
  const struct sender_header *headers;
  size_t n_headers;
  void *opaque; /* returned in the report */
};

enum { SENDER_HEADERS_MAX = 8 };

/* What became of a message. With all but the first two it was not delivered. */
enum sender_fate {
  SENDER_QUEUED,    /* in the queue; only from sender_try() */
  SENDER_DELIVERED, /* a broker has it; only in a report */
  SENDER_FULL,      /* the queue has no room now; only from sender_try() */
  SENDER_AWAY,      /* the topic or its broker is away, or writing is not allowed: a later try may succeed */
  SENDER_UNSURE,    /* it failed, and a later try may succeed or fail again */
  SENDER_TOO_LARGE, /* the message, or its batch, is too large for the topic: it will never be delivered */
  SENDER_REFUSED,   /* the broker refuses the message itself: it will never be delivered */
  SENDER_CLOSED,    /* sender_close() took it back */
  SENDER_FATAL,     /* the producer is broken and can send nothing more */
};

/* After so many failures with SENDER_UNSURE, owners count a message as refused. */
enum { SENDER_UNSURE_MAX = 20 };

/* The report of a message. */
struct sender_report {
  void *opaque; /* that of the message */
  enum sender_fate fate;
  const char *reason; /* set if it was not delivered */
  int32_t partition;
  int64_t offset;
  const struct sender_message *message; /* set if it was not delivered: the message, valid during the call */
};

/* Called for each report, from within sender_poll(), sender_flush() and sender_close(). */
typedef void (*sender_reported)(void *context, const struct sender_report *report);

/* Open a producer. Does not wait for the broker.
 *
 * reported  NULL: no reports
 *
 * Returns ERR_OK; ERR_CONFIG for a property that librdkafka refuses.
 */
err_t sender_open(const struct kafka_layers *layers, sender_reported reported, void *context, struct sender **out);

/* Learn where a topic's partitions are. librdkafka would else ask when the first message is sent, and may let that wait
 * for a second. Blocks: up to timeout_ms. */
void sender_prepare(struct sender *s, const char *topic, int timeout_ms);

/* Close the producer. Messages that are not delivered by then are reported as SENDER_CLOSED. */
void sender_close(struct sender **s);

/* Queue a message. After SENDER_QUEUED it is reported exactly once, after any other fate never.
 *
 * reason  set if it was not queued; valid as long as the sender
 */
enum sender_fate sender_try(struct sender *s, const struct sender_message *message, const char **reason);

/* Queue a message, as sender_try() does, but return an error.
 *
 * Returns ERR_OK: it is reported exactly once; ERR_KAFKA_RETRY when the queue is full: poll and send it again;
 * ERR_KAFKA with the reason for a message that cannot be sent, such as one that is too large or has an unknown topic.
 */
err_t sender_send(struct sender *s, const struct sender_message *message);

/* Run the reports that are due, waiting up to timeout_ms for the first. */
void sender_poll(struct sender *s, int timeout_ms);

/* Have certificates changed since the sender was opened? Then another one should take over. Thread: any. */
bool sender_is_outdated(const struct sender *s);

/* Take back the messages that no broker was sent: they are reported as SENDER_CLOSED. So no broker has them, and
 * another sender may send them. */
void sender_take_back(struct sender *s);

/* Return the number of messages that are not reported yet. */
size_t sender_n_waiting(struct sender *s);

/* Copy a message and everything that it points to. The caller frees the copy with mem_free(). Only the first
 * SENDER_HEADERS_MAX headers are copied. */
err_t sender_message_copy(const struct sender_message *message, struct sender_message **out);

/* Private to ingest/: the client. */
struct rd_kafka_s *sender_client(const struct sender *s);

/* Wait until all messages are reported. Returns ERR_KAFKA_RETRY when timeout_ms passes first. */
err_t sender_flush(struct sender *s, int timeout_ms);

#endif
