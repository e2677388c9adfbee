/* SPDX-License-Identifier: Apache-2.0 */
/* The seen topic: resume each partition at the position in the seen store, and notice when the topic does not continue
 * it.
 *
 * Thread: seen. Blocks: up to some seconds, for a broker.
 */
#ifndef DAEMON_SEEN_SEEN_TOPIC_H
#define DAEMON_SEEN_SEEN_TOPIC_H

#include "daemon/topic/followed_topic.h"
#include "store/seen/seen_store.h"

struct seen_topic {
  struct followed_topic followed;
  struct seen_store *store;
  int64_t ttl_ms; /* how long seen items are remembered; 0: as long as there is room */
  bool is_quiet;  /* the owner has just logged the same lines */
};

err_t seen_topic_init(const struct kafka_layers *layers, const char *name, int64_t ttl_ms, struct seen_store *store,
                      struct seen_topic *out);
void seen_topic_fini(struct seen_topic *t);

/* Read every partition from its position in the store.
 *
 * Returns ERR_KAFKA_RETRY while broker or topic are away; ERR_DISCONTINUITY when a position is outside its partition,
 * or the topic has fewer partitions than the store.
 */
err_t seen_topic_resume(struct seen_topic *t);

/* Read the partitions that were added to the topic, from their first records. Errors as seen_topic_resume(). */
err_t seen_topic_add_new_partitions(struct seen_topic *t);

#endif
