/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: opens spaces and arenas, applies batches to both arenas of the pair, and checks parts. */
#include "engine/engine.h"

#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "engine/arena/arena_alive.h"
#include "engine/arena/arena_load.h"
#include "engine/arena/arena_space.h"
#include "engine/attributes/attribute_check.h"
#include "engine/engine_publish.h"
#include "engine/like.h"

/* Load a space of the configuration. The first generation of a name is the current one. */
static err_t open_space(const struct engine_space *config, struct space_table *table)
{
  bool is_first = space_table_find(table, span_of_str(config->name), 0) == SPACE_TABLE_NONE;
  struct space *space;

  TRY(mem_array(1, sizeof *space, &space));
  err_code_t err = space_init(config, space);
  space_table_put(table, space_table_room(table), space, is_first);
  return err;
}

static err_t open_spaces(const struct engine_config *config, struct engine *e)
{
  TRY(space_table_init(config->n_spaces + ENGINE_SPACES_MORE, &e->spaces));
  for (size_t i = 0; i < config->n_spaces; i++)
    TRY(open_space(&config->spaces[i], &e->spaces));
  return ERR_OK;
}

/* What both arenas are made for. */
static struct arena_plan plan_of(struct engine *e)
{
  return (struct arena_plan){ .spaces = &e->spaces,
                              .attributes = &e->attributes,
                              .lifetimes = e->lifetimes,
                              .kernels = e->kernels,
                              .hash = &e->hash,
                              .backends = &e->backends,
                              .capacity = e->max_items,
                              .pair_bytes_per_item = engine_host_bytes_per_pair(e) };
}

err_t engine_open(const struct engine_config *config, struct engine **out)
{
  AUTO(engine_close) struct engine *e = NULL;

  TRY(mem_array(1, sizeof *e, &e));
  e->max_k = config->max_k;
  e->max_batch = config->max_batch;
  e->max_items = config->max_items;
  e->n_workers = config->n_workers > 0 ? config->n_workers : 1;
  TRY(backends_choose(config->backend, &e->backends));
  TRY(kernels_get(config->isa, &e->kernels));
  TRY(key_hash_init(&e->hash));
  TRY(open_spaces(config, e));
  TRY(attributes_copy(&config->attributes, &e->attributes));
  TRY(engine_plan_lifetimes(config, e));
  TRY(engine_verify_memory(e, false));
  TRY(mem_array(1, sizeof *e->pair, &e->pair));
  const struct arena_plan plan = plan_of(e);
  for (int i = 0; i < 2; i++)
    TRY(arena_init(&plan, &e->pair->arenas[i]));
  TRY(filter_cache_open(bits_words(e->max_items), FILTER_CACHE_BYTES, &e->filters));
  *out = e;
  e = NULL;
  return ERR_OK;
}

void engine_close(struct engine **e)
{
  if (!*e)
    return;
  team_close(&(*e)->team);
  filter_cache_close(&(*e)->filters);
  for (int i = 0; (*e)->pair && i < 2; i++)
    arena_fini(&(*e)->pair->arenas[i]);
  mem_free(&(*e)->pair);
  space_table_fini(&(*e)->spaces);
  attributes_free(&(*e)->attributes);
  region_fini(&(*e)->batch);
  mem_free(e);
}

err_t engine_share_searches(struct engine *e, const struct engine_threads *threads)
{
  assert(!e->team);
  e->threads = *threads;
  if (e->threads.per_search > TEAM_MEMBERS_MAX)
    e->threads.per_search = TEAM_MEMBERS_MAX;
  if (threads->per_search < 2 || threads->max < 2)
    return ERR_OK;
  return team_open(threads->max - 1, threads->max, &e->team);
}

bool engine_has_space(const struct engine *e, struct span name)
{
  return space_table_next_user(&e->spaces, name, 0) != SPACE_TABLE_NONE;
}

err_t engine_check_part(const struct engine *e, const struct part *part)
{
  size_t place = space_table_next_user(&e->spaces, part->space, 0);
  err_code_t err = ERR_OK;

  if (place == SPACE_TABLE_NONE)
    FAIL(ERR_SPACE, "there is no space %s: add it to `spaces` of the configuration, or omit the part",
         log_quote(part->space));
  for (; place != SPACE_TABLE_NONE; place = space_table_next_user(&e->spaces, part->space, place + 1)) {
    const struct space *space = e->spaces.entries[place].space;
    err = space->similarity->check_part(space->model, part);
    if (err == ERR_OK)
      break;
  }
  return err;
}

err_t engine_check_item(const struct engine *e, const struct item_change *change)
{
  for (size_t i = 0; i < change->n_parts; i++)
    TRY(engine_check_part(e, &change->parts[i]));
  return ERR_OK;
}

err_t engine_normalize_attribute(const struct engine *e, struct region *region, struct attribute_value *attribute,
                                 bool *is_known)
{
  size_t index = attributes_find(&e->attributes, attribute->name, 0);

  *is_known = index != ATTRIBUTE_NONE;
  if (!*is_known)
    return ERR_OK;
  TRY(attribute_normalize(&e->attributes.v[index], region, &attribute->value));
  if (attribute->value.kind != VALUE_INTEGER)
    return ERR_OK;
  return lifetimes_verify_unit(&e->lifetimes, index, attribute->name, attribute->value.integer);
}

err_t engine_apply(struct engine *e, const struct item_change *changes, size_t n, const struct position *positions,
                   size_t n_positions)
{
  const struct prepare_target target = engine_publish_target(e);

  return engine_publish_changes(e, &target, changes, n, positions, n_positions);
}

err_t engine_pass_time(struct engine *e, bool *has_published)
{
  const struct epoch epoch = engine_publish_next(e, NULL, 0);
  bool has_changed = arena_alive_advance(pair_back(e->pair), epoch.time_ms);

  if (has_published)
    *has_published = has_changed;
  if (has_changed)
    return engine_publish(e, &epoch, NULL, 0);
  engine_publish_note_time(e); /* the bound may have been too early */
  return ERR_OK;
}

static void forget_watermark(struct arena *back, void *context)
{
  (void)context;
  arena_forget_watermark(back);
}

err_t engine_set_positions(struct engine *e, const struct position *positions, size_t n)
{
  const struct epoch epoch = engine_publish_next(e, positions, n);

  return engine_publish_edit(e, &epoch, forget_watermark, NULL);
}

/* The back arena while engine_replace() loads it. */
struct engine_loading {
  struct engine *engine;
  struct arena_load load;
};

err_t engine_loading_put(struct engine_loading *loading, struct region *scratch, size_t first,
                         const struct item_change *changes, size_t n)
{
  struct prepare_target target = engine_publish_target(loading->engine);
  struct prepared_change *prepared;

  target.team = NULL; /* the threads that load the arena are as many as there are cores */
  TRY(prepare_changes(&target, changes, n, scratch, &prepared));
  return arena_load_put(&loading->load, first, prepared, n);
}

/* The front arena's items on their way to the back arena. */
struct copying {
  const struct arena *from;
  struct arena_load load;
  _Atomic size_t next_block;
};

static err_code_t copy_blocks(void *context)
{
  struct copying *c = context;
  size_t n_blocks = (c->from->n_slots + LOAD_BLOCK_SLOTS - 1) / LOAD_BLOCK_SLOTS, block;

  while ((block = atomic_fetch_add(&c->next_block, 1)) < n_blocks) {
    progress_note();
    TRY(arena_load_copy(&c->load, c->from, block));
  }
  return ERR_OK;
}

/* Make the back arena anew. It is closed and opened again, so that its memory is given back too. */
static err_t renew_back(struct engine *e, struct arena **out)
{
  const struct arena_plan plan = plan_of(e);
  struct arena *back = pair_back(e->pair);

  arena_fini(back);
  *out = back;
  return arena_init(&plan, back);
}

/* Set what the new catalogue's epoch says besides its items. */
static err_t date(struct arena *a, const struct epoch *epoch)
{
  arena_alive_advance(a, epoch->time_ms);
  arena_date(a, epoch->number);
  return arena_advance(a, epoch->positions, epoch->n_positions);
}

/* All parts are prepared again. */
static void forget_refused(struct engine *e)
{
  for (size_t i = 0; i < e->spaces.n; i++) {
    if (e->spaces.entries[i].space)
      atomic_store(&e->spaces.entries[i].space->n_refused, 0);
  }
}

static err_t load_back(struct engine *e, engine_feed feed, void *context)
{
  struct engine_loading loading = { .engine = e };
  struct arena *back;

  TRY(renew_back(e, &back));
  forget_refused(e);
  arena_load_begin(back, &loading.load);
  err_code_t err = feed(context, &loading);
  if (err == ERR_OK)
    return arena_load_finish(&loading.load);
  arena_load_abandon(&loading.load);
  return err;
}

static err_t copy_to_back(struct engine *e, size_t n_threads)
{
  struct copying c = { 0 };
  struct arena *back;

  TRY(renew_back(e, &back));
  c.from = pair_front(e->pair);
  arena_load_begin(back, &c.load);
  err_code_t err = parallel_run(n_threads, copy_blocks, &c);
  if (err == ERR_OK)
    return arena_load_finish(&c.load);
  arena_load_abandon(&c.load);
  return err;
}

err_t engine_replace(struct engine *e, engine_feed feed, void *context, size_t n_threads,
                     const struct position *positions, size_t n)
{
  struct epoch epoch = engine_publish_next(e, positions, n);

  TRY(load_back(e, feed, context));
  epoch.time_ms = engine_publish_time(e); /* loading may take long */
  TRY(date(pair_back(e->pair), &epoch));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  TRY(copy_to_back(e, n_threads));
  TRY(date(pair_back(e->pair), &epoch));
  engine_publish_note_time(e);
  return ERR_OK;
}

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
