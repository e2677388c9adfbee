/* SPDX-License-Identifier: Apache-2.0 */
/* The control topic: read its one partition from the position in the store, and go on after everything that can be
 * waited out.
 *
 * Thread: catalogue. Blocks: some seconds at most, for a broker that does not answer.
 */
#ifndef DAEMON_MODELS_MODELS_TOPIC_H
#define DAEMON_MODELS_MODELS_TOPIC_H

#include "daemon/topic/followed_topic.h"
#include "daemon/topic/topic_audit.h"

enum { MODELS_PROBLEM_BYTES = 512 };

struct models_topic {
  struct followed_topic followed;
  struct topic_audit audit;           /* a topic that is replaced within a moment looks like the former one */
  bool is_connected;                  /* the partition is being read */
  bool is_another_one;                /* it does not continue the store: the stored position means nothing */
  bool has_caught_up;                 /* it was read to where it ended when it was first connected */
  int64_t retry_due_ns;               /* no attempt to connect before this */
  err_code_t last_err;                /* logged already; ERR_OK once it was read on */
  char problem[MODELS_PROBLEM_BYTES]; /* why it is not being read; "" if it is */
};

/* audit_ns  the longest time between two audits */
err_t models_topic_init(const struct kafka_layers *layers, const char *name, int64_t audit_ns,
                        struct models_topic *out);
void models_topic_fini(struct models_topic *t);

/* Take the records that have arrived, in order. They are valid until the next call. If the topic or its brokers are
 * away, there are none, and `problem` says why.
 *
 * stored      where the store stands; NULL: it has no position
 * timeout_ms  how long to wait for a first record
 * records     [max]; the first *n are set
 *
 * Returns an error that waiting does not cure.
 */
err_t models_topic_poll(struct models_topic *t, const struct store_position *stored, int timeout_ms, size_t max,
                        struct topic_record *records, size_t *n);

/* The records that were taken cannot be used now, because of `err`, of class RETRY: wait, and take them again. */
err_t models_topic_wait(struct models_topic *t, err_code_t err);

/* Return the position after the records that were taken; NULL: nothing was read yet. */
const struct store_position *models_topic_position(const struct models_topic *t);

#endif
