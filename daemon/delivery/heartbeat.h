/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's heartbeat: a record that it writes to the partials topic each second, so that merges know of it while there
 * are no queries. Its key changes each time, which spreads the records over all partitions.
 *
 * Thread: the outlet's.
 */
#ifndef DAEMON_DELIVERY_HEARTBEAT_H
#define DAEMON_DELIVERY_HEARTBEAT_H

#include "base/region.h"
#include "daemon/delivery/outlet.h"

struct heartbeat {
  struct outlet_item item;
  bool is_on_its_way;
  const char *topic;
  uint32_t shard, n_shards;
  uint64_t n_sent;
  int64_t due_ns;
  struct region region;
  struct span value;
};

/* topic  outlives the heartbeat */
err_t heartbeat_init(const char *topic, uint32_t shard, uint32_t n_shards, struct heartbeat *out);
void heartbeat_fini(struct heartbeat *h);

/* Send a heartbeat if one is due, and the last one has ended. */
void heartbeat_step(struct heartbeat *h, struct outlet *outlet);

/* If the item is the heartbeat's, note its end and return true. */
bool heartbeat_end(struct heartbeat *h, const struct outlet_item *item);

#endif
