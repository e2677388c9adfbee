/* SPDX-License-Identifier: Apache-2.0 */
/* Which shards a merge has heard of, and when. Thread: any; it locks. */
#ifndef DAEMON_MERGE_SHARDS_HEARD_H
#define DAEMON_MERGE_SHARDS_HEARD_H

#include "base/err.h"

/* A shard of a layout. */
struct shard_heard {
  uint32_t shard, n_shards;
  int64_t heard_ns; /* when its last part or heartbeat came */
};

struct shards_heard;

err_t shards_heard_open(struct shards_heard **out);
void shards_heard_close(struct shards_heard **s);

/* Note that something has come from a shard. Of more shards than can be, the ones beyond are not noted. */
void shards_heard_note(struct shards_heard *s, uint32_t shard, uint32_t n_shards, int64_t now_ns);

/* Forget shards that were not heard of since a time: their layout was left. */
void shards_heard_forget(struct shards_heard *s, int64_t before_ns);

/* List the shards in order of layout and shard, and return their number.
 *
 * out  [capacity] */
enum { SHARDS_HEARD_MAX = 4096 };
size_t shards_heard_list(struct shards_heard *s, struct shard_heard *out, size_t capacity);

#endif
