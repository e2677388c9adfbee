/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's partitions and its group. */
#include "daemon/config/config_shard.h"

#include <inttypes.h>
#include <stdio.h>

void config_shard_keep(const struct config *c, struct position *positions, size_t *n)
{
  size_t n_kept = 0;

  for (size_t i = 0; i < *n; i++) {
    if (config_shard_has(c, positions[i].partition))
      positions[n_kept++] = positions[i];
  }
  *n = n_kept;
}

void config_shard_group(const struct config *c, char out[CONFIG_GROUP_BYTES])
{
  if (config_is_shard(c))
    snprintf(out, CONFIG_GROUP_BYTES, "%s.shard-%" PRIu64 "-of-%" PRIu64, c->query.group, c->catalogue.shard,
             c->catalogue.n_shards);
  else
    snprintf(out, CONFIG_GROUP_BYTES, "%s", c->query.group);
}
