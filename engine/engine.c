/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: opens spaces and arenas, checks what they get, and publishes batches, times and positions. */
#include "engine/engine.h"

#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/arena/arena_alive.h"
#include "engine/attributes/attribute_check.h"
#include "engine/engine_publish.h"

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

struct arena_plan engine_arena_plan(struct engine *e)
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
  const struct arena_plan plan = engine_arena_plan(e);
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

err_t engine_pass_time(struct engine *e)
{
  const struct epoch epoch = engine_publish_next(e, NULL, 0);

  if (arena_alive_advance(pair_back(e->pair), epoch.time_ms))
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
