/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of the catalogue a shard keeps, and what follows from being one (docs/sharding.md). */
#ifndef DAEMON_CONFIG_CONFIG_SHARD_H
#define DAEMON_CONFIG_CONFIG_SHARD_H

#include "base/item.h"
#include "daemon/config/config.h"

/* Longest name of a query group: query.group with a suffix. */
enum { CONFIG_GROUP_BYTES = 320 };

/* Is the daemon a shard? */
static inline bool config_is_shard(const struct config *c)
{
  return c->catalogue.n_shards > 0;
}

/* Does the daemon keep the items of this catalogue partition? */
static inline bool config_shard_has(const struct config *c, int32_t partition)
{
  return !config_is_shard(c) || (uint64_t)partition % c->catalogue.n_shards == c->catalogue.shard;
}

/* Keep the positions of partitions that the daemon reads, in order: the others are for other shards. */
void config_shard_keep(const struct config *c, struct position *positions, size_t *n);

/* Write the consumer group on the query topic. Each shard has its own, so that each reads every query. */
void config_shard_group(const struct config *c, char out[CONFIG_GROUP_BYTES]);

#endif
