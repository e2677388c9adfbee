/* The catalogue topic as the store knows it: taking up each partition where the store stands, and noticing that the
 * topic is not the one that the store came from.
 *
 * Thread: catalogue. Calls block for a broker up to some seconds.
 */
#ifndef DAEMON_CATALOGUE_LOG_H
#define DAEMON_CATALOGUE_LOG_H

#include "daemon/log_position.h"

struct catalogue_log {
  const char *topic;
  struct store *store;
  struct catalogue_reader *reader; /* owned */
  struct log_positions at;
};

err_t catalogue_log_init(const struct kafka_layers *layers, const char *topic, struct store *store,
                         struct catalogue_log *out);
void catalogue_log_fini(struct catalogue_log *l);

/* Take up every partition where the store stands, and tell the store what it comes from.
 *
 * Returns ERR_DISCONTINUITY when cluster, topic or partitions are others than those that the store came from, or a
 * position is outside its log; ERR_KAFKA_RETRY while broker or topic are away.
 */
err_t catalogue_log_take_up(struct catalogue_log *l);

/* Take up the partitions that were added to the topic, from their first records. Errors as above. */
err_t catalogue_log_take_up_new(struct catalogue_log *l);

#endif
