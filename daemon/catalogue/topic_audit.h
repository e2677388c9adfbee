/* SPDX-License-Identifier: Apache-2.0 */
/* Looking back: is a record that was applied some time ago still in the log?
 *
 * A topic that is deleted and made anew within a moment, and filled at once beyond where we stand, gives its consumer
 * no sign: it goes on at its offset, in another log. So a second consumer reads, every so often, the record of each
 * partition that was the newest one when the audit before began. Where it is another record now, the topic is another
 * one. Where it is the same, so is all that was read before the audit: the newest record from then is looked for next.
 *
 * Thread: catalogue. Blocks: no, but for opening the consumer.
 */
#ifndef DAEMON_CATALOGUE_TOPIC_AUDIT_H
#define DAEMON_CATALOGUE_TOPIC_AUDIT_H

#include "daemon/catalogue/topic_position.h"

/* The record of one partition that is looked for. */
struct audit_anchor {
  struct store_position position; /* last_offset -1: none */
  struct store_position next;     /* for the next audit: the newest record when this one began */
  bool is_awaited;
};

/* An audit that somebody waits for. */
enum topic_audit_request { TOPIC_AUDIT_NOT_REQUESTED, TOPIC_AUDIT_REQUESTED, TOPIC_AUDIT_RUNNING, TOPIC_AUDIT_DONE };

struct topic_audit {
  struct kafka_layers layers;
  const char *topic;
  struct catalogue_reader *reader; /* NULL before the first audit of a log */
  bool is_running;
  struct audit_anchor *anchors;      /* [n], index is the partition */
  size_t n;
  size_t capacity;
  int64_t longest_ns; /* between two audits */
  int64_t due_ns;     /* of the next audit, or the time that the running one may take */
  size_t n_awaited;
  enum topic_audit_request request;
};

void topic_audit_init(const struct kafka_layers *layers, const char *topic, int64_t longest_ns, struct topic_audit *out);
void topic_audit_fini(struct topic_audit *a);

/* The log was taken up, and its last records were verified, or are about to be. */
err_t topic_audit_begin(struct topic_audit *a, const struct topic_positions *positions);

/* Has an audit that began after the first call found nothing? Ask until it has: it is due at once. Then all that had
 * been read by the first call is of one log, the one that is there; the next call asks anew. */
bool topic_audit_confirms(struct topic_audit *a);

/* Go on: to be called often. Returns ERR_DISCONTINUITY with the partition and offset of a record that is another
 * one. */
err_t topic_audit_step(struct topic_audit *a, const struct topic_positions *positions);

#endif
