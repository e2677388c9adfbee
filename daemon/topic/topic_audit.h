/* SPDX-License-Identifier: Apache-2.0 */
/* The audit of a topic, of the catalogue or of models: is a record that was applied some time ago still at its offset?
 *
 * A topic can be deleted, created again, and at once be filled beyond our offset. Its consumer notices nothing and goes
 * on at that offset in the new topic. So a second consumer reads one record of each partition every few seconds: the
 * record that was the newest when the previous audit began. If it differs, this is another topic. If it is the same,
 * everything that was read before this audit came from this topic. The next audit reads the record that is the newest
 * now.
 *
 * Thread: the one that reads the topic. Blocks: only to open the consumer, and up to 1 s for a broker's bounds of a
 * partition.
 */
#ifndef DAEMON_TOPIC_TOPIC_AUDIT_H
#define DAEMON_TOPIC_TOPIC_AUDIT_H

#include "daemon/topic/topic_position.h"

/* The record that the audit reads from one partition. */
struct audit_anchor {
  struct store_position position; /* the record to read; last_offset -1: none */
  struct store_position next;     /* for the next audit: the newest record when this audit began */
  bool is_awaited;                /* the running audit has not read it yet */
};

/* An audit that the caller of topic_audit_confirms() waits for. */
enum topic_audit_request { TOPIC_AUDIT_NOT_REQUESTED, TOPIC_AUDIT_REQUESTED, TOPIC_AUDIT_RUNNING, TOPIC_AUDIT_DONE };

struct topic_audit {
  struct kafka_layers layers;
  const char *topic;
  struct topic_reader *reader; /* NULL before the first audit of a topic */
  bool is_running;
  struct audit_anchor *anchors; /* [n], index is the partition */
  size_t n;
  size_t capacity;
  int64_t max_interval_ns; /* between two audits */
  int64_t due_ns;          /* start of the next audit, or time limit of the running one */
  size_t n_awaited;        /* anchors with is_awaited */
  enum topic_audit_request request;
};

/* Make an audit that has not begun.
 *
 * layers           those of the consumer that reads the topic
 * max_interval_ns  the longest time between two audits
 */
void topic_audit_init(const struct kafka_layers *layers, const char *topic, int64_t max_interval_ns,
                      struct topic_audit *out);
void topic_audit_fini(struct topic_audit *a);

/* Forget the running audit and all anchors. Call this when reading of the topic resumes: its last records are verified
 * then, so the audit starts again from there. */
err_t topic_audit_begin(struct topic_audit *a, const struct topic_positions *positions);

/* Has an audit that began after the first call found no difference? The first call makes an audit due at once; call
 * again until this returns true. Then all records that were read before the first call come from the topic that exists
 * now. A call after it has returned true requests a new audit. */
bool topic_audit_confirms(struct topic_audit *a);

/* Start, continue or end an audit, without waiting for records. Call this in each loop of the thread. If the broker
 * does not answer, the audit begins again: reading of the topic must not stop for it.
 *
 * Returns ERR_DISCONTINUITY with partition and offset when a record differs; ERR_MEMORY. */
err_t topic_audit_step(struct topic_audit *a, const struct topic_positions *positions);

#endif
