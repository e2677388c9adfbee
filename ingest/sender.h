/* A producer: each message is reported when the broker has it. A message that is sent again after a failure may come
 * behind later ones; the property enable.idempotence keeps their order.
 *
 * Thread: sender_send() any; sender_poll() one thread, which runs the reports. Memory: keys, values and headers are
 * copied.
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

/* What became of a message. */
struct sender_report {
  void *opaque;
  bool is_delivered;
  bool is_retriable;  /* not delivered, but it may help to send it again */
  const char *reason; /* where it was not delivered */
  int32_t partition;
  int64_t offset;
};

/* Called in sender_poll(), sender_flush() and sender_close(). */
typedef void (*sender_reported)(void *context, const struct sender_report *report);

/* Returns ERR_CONFIG for a property that librdkafka refuses. Does not wait for the broker. */
err_t sender_open(const struct kafka_layers *layers, sender_reported reported, void *context, struct sender **out);

/* Close; messages that were not delivered by then are reported as such. */
void sender_close(struct sender **s);

/* Queue a message.
 *
 * Returns ERR_OK: it will be reported exactly once. ERR_KAFKA_RETRY when the queue is full: poll and send it again.
 * ERR_KAFKA for a message that can never be sent (too large, unknown topic), with the reason. After an error there is
 * no report.
 */
err_t sender_send(struct sender *s, const struct sender_message *message);

/* Run reports, waiting up to timeout_ms for the first. */
void sender_poll(struct sender *s, int timeout_ms);

/* Messages not reported yet. */
size_t sender_n_waiting(struct sender *s);

/* Wait until all messages are reported. Returns ERR_KAFKA_RETRY when timeout_ms passes first. */
err_t sender_flush(struct sender *s, int timeout_ms);

#endif
