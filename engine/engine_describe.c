/* SPDX-License-Identifier: Apache-2.0 */
/* Says what the front epoch has, for those who neither search nor change it: positions, counts, spaces, the backend. */
#include "engine/arena/arena_space.h"
#include "engine/engine_state.h"
#include "engine/like.h"

bool engine_has_seen(struct engine *e, const struct position *positions, size_t n)
{
  const struct arena *front = pair_acquire(e->pair);
  bool has_seen = true;

  for (size_t i = 0; i < n && has_seen; i++)
    has_seen = arena_next(front, positions[i].partition) >= positions[i].next;
  pair_release(e->pair, front);
  return has_seen;
}

void engine_epoch_get(struct engine *e, struct engine_epoch *out, struct position *positions, size_t capacity)
{
  const struct arena *front = pair_acquire(e->pair);
  size_t n = front->n_watermark < capacity ? front->n_watermark : capacity;

  *out = (struct engine_epoch){ .number = front->epoch,
                                .n_items = front->n_slots,
                                .n_positions = front->n_watermark,
                                .has_time = !lifetimes_plan_is_empty(&e->lifetimes),
                                .time_unix_ms = front->lifetimes.time_ms,
                                .n_expired = front->lifetimes.n_expired,
                                .n_embargoed = front->lifetimes.n_embargoed };
  if (n)
    memcpy(positions, front->watermark, n * sizeof *positions);
  pair_release(e->pair, front);
}

const char *engine_backend_name(const struct engine *e, size_t *n_failed)
{
  *n_failed = atomic_load(&e->backends.first);
  return e->backends.at[*n_failed]->name;
}

const char *engine_backend_reason(const struct engine *e)
{
  return backends_reason(&e->backends);
}

const struct attributes *engine_attributes(const struct engine *e)
{
  return &e->attributes;
}

uint64_t engine_attribute_count(struct engine *e, size_t attribute)
{
  const struct arena *front = pair_acquire(e->pair);
  uint64_t n = attribute_columns_count(front->attributes, attribute);

  pair_release(e->pair, front);
  return n;
}

size_t engine_n_spaces(const struct engine *e)
{
  const struct arena *front = pair_acquire(e->pair);
  size_t n = front->n_spaces;

  pair_release(e->pair, front);
  return n;
}

static void describe(const struct engine *e, const struct arena_space *in, struct engine_space_info *out)
{
  const struct space *space = in->space;
  const struct columns *columns = in->on[atomic_load(&e->backends.first)];

  *out = (struct engine_space_info){
    .number = space->number,
    .generation = space->generation,
    .is_current = in->is_current,
    .n_refused = atomic_load(&space->n_refused),
    .similarity = space->similarity->name,
    .takes_like = like_is_possible(space, &e->backends),
    .n_items = in->n_items,
    .n_alive = arena_space_n_alive(in),
    .bytes_per_item = columns->ops->bytes_per_item(space->model),
    .lengths = space->similarity->lengths(space->model),
  };
  memcpy(out->name, space->name, sizeof out->name);
  memcpy(out->part_name, space->part_name, sizeof out->part_name);
  memcpy(out->digest, space->digest, sizeof out->digest);
}

bool engine_space_get(struct engine *e, size_t place, struct engine_space_info *out)
{
  const struct arena *front = pair_acquire(e->pair);
  bool is_there = place < front->n_spaces && front->spaces[place].space;

  if (is_there)
    describe(e, &front->spaces[place], out);
  pair_release(e->pair, front);
  return is_there;
}

bool engine_space_find(struct engine *e, struct span name, uint32_t generation, struct engine_space_info *out)
{
  const struct arena *front = pair_acquire(e->pair);
  const struct arena_space *in = arena_space_find(front, name, generation);

  if (in)
    describe(e, in, out);
  pair_release(e->pair, front);
  return in != NULL;
}

void engine_filters_get(struct engine *e, struct engine_filters *out)
{
  struct filter_cache_stats stats;

  filter_cache_get_stats(e->filters, &stats);
  *out = (struct engine_filters){ stats.n_hits, stats.n_patched, stats.n_evaluated };
}

const struct key_hash *engine_key_hash(const struct engine *e)
{
  return &e->hash;
}
