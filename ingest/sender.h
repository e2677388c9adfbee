/* SPDX-License-Identifier: Apache-2.0 */
/* A producer: each message is reported when the broker has it. A message that is sent again after a failure may come
 * behind later ones; the property enable.idempotence keeps their order.
 *
 * Thread: sender_send() and sender_try() any; sender_poll() one thread, which runs the reports. Memory: keys, values
 * and headers are copied.
 */
#ifndef INGEST_SENDER_H
#define INGEST_SENDER_H

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka_properties.h"

struct sender;

struct sender_header {
  const char *name;
  struct span value;
};

struct sender_message {
  const char *topic;
  bool has_key;
  struct span key;
  bool has_value; /* false: a tombstone */
  struct span value;
  const struct sender_header *headers;
  size_t n_headers;
  void *opaque; /* for the report */
};

enum { SENDER_HEADERS_MAX = 8 };

/* What became of a message. All but the first two: it was not delivered. */
enum sender_fate {
  SENDER_QUEUED,    /* on its way (of sender_try()) */
  SENDER_DELIVERED, /* a broker has it (of a report) */
  SENDER_FULL,      /* the queue has no room for it now (of sender_try()) */
  SENDER_AWAY,      /* the topic or its broker is away, or may not be written: it may be taken later */
  SENDER_UNSURE,    /* it failed for a reason that may pass or stay */
  SENDER_TOO_LARGE, /* never: it, or the batch that it went in, is too large for its topic */
  SENDER_REFUSED,   /* never: the message itself is not taken */
  SENDER_CLOSED,    /* sender_close() took it back */
  SENDER_FATAL,     /* the producer is lost: nothing is sent through it any more */
};

struct sender_report {
  void *opaque;
  enum sender_fate fate;
  const char *reason; /* where it was not delivered */
  int32_t partition;
  int64_t offset;
  const struct sender_message *message; /* where it was not delivered: as it was sent, valid during the call */
};

/* Called in sender_poll(), sender_flush() and sender_close(). */
typedef void (*sender_reported)(void *context, const struct sender_report *report);

/* Returns ERR_CONFIG for a property that librdkafka refuses. Does not wait for the broker. */
err_t sender_open(const struct kafka_layers *layers, sender_reported reported, void *context, struct sender **out);

/* Close; messages that were not delivered by then are reported as such. */
void sender_close(struct sender **s);

/* Queue a message. SENDER_QUEUED: it will be reported exactly once; after any other fate there is no report.
 *
 * reason  set where it was not queued: static, or valid as long as the sender
 */
enum sender_fate sender_try(struct sender *s, const struct sender_message *message, const char **reason);

/* The same, with the fate as an error.
 *
 * Returns ERR_OK: it will be reported exactly once. ERR_KAFKA_RETRY when the queue is full: poll and send it again.
 * ERR_KAFKA for a message that cannot be sent (too large, unknown topic), with the reason.
 */
err_t sender_send(struct sender *s, const struct sender_message *message);

/* Run reports, waiting up to timeout_ms for the first. */
void sender_poll(struct sender *s, int timeout_ms);

/* Messages not reported yet. */
size_t sender_n_waiting(struct sender *s);

/* Copy a message with all that it points to, to be freed with mem_free(). Beyond SENDER_HEADERS_MAX headers are left
 * out. */
err_t sender_message_copy(const struct sender_message *message, struct sender_message **out);

/* Wait until all messages are reported. Returns ERR_KAFKA_RETRY when timeout_ms passes first. */
err_t sender_flush(struct sender *s, int timeout_ms);

#endif
