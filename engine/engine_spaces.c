/* SPDX-License-Identifier: Apache-2.0 */
/* Adds, switches and removes spaces in both arenas of the pair. What can fail happens before the first arena changes.
 */
#include "engine/engine_spaces.h"

#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/arena/arena_space.h"
#include "engine/arena/shared_parts.h"
#include "engine/engine_publish.h"

struct engine_model {
  struct space space;
};

err_t engine_load_model(const struct engine_space *space, struct engine_model **out)
{
  AUTO(engine_model_close) struct engine_model *m = NULL;

  TRY(mem_array(1, sizeof *m, &m));
  TRY(space_init(space, &m->space));
  *out = m;
  m = NULL;
  return ERR_OK;
}

void engine_model_close(struct engine_model **m)
{
  if (!*m)
    return;
  space_fini(&(*m)->space);
  mem_free(m);
}

const char *engine_model_digest(const struct engine_model *m)
{
  return m->space.digest;
}

/* ---- Adding ---- */

/* A space on its way into the arenas. */
struct adding {
  size_t place;
  struct arena_space made[2]; /* one for each arena; those before `next` are in an arena */
  size_t next;
};

static err_t verify_new(struct engine *e, const struct space *space)
{
  struct span name = span_of_str(space->name);

  if (space_table_find(&e->spaces, name, 0) == SPACE_TABLE_NONE)
    FAIL(ERR_SPACE, "there is no space %s of which %u could be a generation", space->name, space->generation);
  if (space_table_find(&e->spaces, name, space->generation) != SPACE_TABLE_NONE)
    FAIL(ERR_SPACE, "space %s has a generation %u already", space->name, space->generation);
  if (space_table_room(&e->spaces) == SPACE_TABLE_NONE)
    FAIL(ERR_FULL, "there are %zu spaces, and no room for another: remove generations that nobody needs",
         e->spaces.capacity);
  TRY(shared_parts_verify(&e->spaces, space));
  return engine_verify_room(e, space);
}

/* Reserve the columns for both arenas. A backend that has no room for them has not failed. */
static err_t make_columns(struct engine *e, const struct space *space, struct adding *out)
{
  for (int i = 0; i < 2; i++) {
    err_code_t err = arena_space_open(&e->pair->arenas[i], space, false, false, &out->made[i]);
    if (err != ERR_OK)
      FAIL(ERR_FULL, "generation %u of space %s does not fit: %s", space->generation, space->name, err_message());
    arena_space_defer_index(&e->pair->arenas[i], &out->made[i]);
  }
  return ERR_OK;
}

/* Free the columns that are in no arena. */
static void drop_columns(struct engine *e, struct adding *adding)
{
  for (size_t i = adding->next; i < 2; i++)
    arena_space_close(&e->pair->arenas[i], &adding->made[i]);
}

/* made[0] was opened for arenas[0] and may come into the other one. Both fit both: columns depend on the model and on
 * capacity, lifetimes and backends, which the arenas of a pair have in common. */
static void put_space(struct arena *back, void *context)
{
  struct adding *adding = context;

  back->spaces[adding->place] = adding->made[adding->next++];
  back->n_spaces = adding->place < back->n_spaces ? back->n_spaces : adding->place + 1;
}

err_t engine_add_space(struct engine *e, struct engine_model **model)
{
  struct space *space = &(*model)->space;
  struct adding adding = { 0 };

  static_assert(offsetof(struct engine_model, space) == 0, "the table frees the model as a space");
  TRY(verify_new(e, space));
  err_code_t err = make_columns(e, space, &adding);
  if (err != ERR_OK) {
    drop_columns(e, &adding);
    return err;
  }
  adding.place = space_table_room(&e->spaces);
  space_table_put(&e->spaces, adding.place, space, false);
  *model = NULL;
  const struct epoch epoch = engine_publish_next(e, NULL, 0);
  err = engine_publish_edit(e, &epoch, put_space, &adding);
  drop_columns(e, &adding);
  return err;
}

/* ---- Filling ---- */

static err_t find(const struct engine *e, struct span name, uint32_t generation, size_t *place)
{
  *place = space_table_find(&e->spaces, name, generation);
  if (generation == 0 || *place == SPACE_TABLE_NONE)
    FAIL(ERR_SPACE, "space %s has no generation %u", log_quote(name), generation);
  return ERR_OK;
}

err_t engine_check_fill(const struct engine *e, struct span name, uint32_t generation, const struct part *part)
{
  size_t place;

  TRY(find(e, name, generation, &place));
  const struct space *space = e->spaces.entries[place].space;
  return space->similarity->check_part(space->model, part);
}

err_t engine_fill_space(struct engine *e, struct span name, uint32_t generation, const struct item_change *changes,
                        size_t n)
{
  struct prepare_target target = engine_publish_target(e);

  TRY(find(e, name, generation, &target.only));
  return engine_publish_changes(e, &target, changes, n, NULL, 0);
}

/* ---- Building its index ---- */

static bool lacks_index_in(const struct arena *a, size_t place)
{
  return !arena_space_has_index(a, &a->spaces[place]);
}

bool engine_lacks_index(const struct engine *e, struct span name, uint32_t generation)
{
  size_t place = space_table_find(&e->spaces, name, generation);

  return place != SPACE_TABLE_NONE &&
         (lacks_index_in(&e->pair->arenas[0], place) || lacks_index_in(&e->pair->arenas[1], place));
}

/* The arenas may have different parts of the index: it changes no exact answer. What the front arena has is copied: in
 * both arenas each item has the same slot, since every change is in both before the next one begins. */
err_t engine_build_index(struct engine *e, struct span name, uint32_t generation)
{
  size_t place;

  TRY(find(e, name, generation, &place));
  if (!lacks_index_in(pair_back(e->pair), place)) {
    const struct epoch epoch = engine_publish_next(e, NULL, 0);
    TRY(engine_publish(e, &epoch, NULL, 0));
  }
  const struct arena *back = pair_back(e->pair), *front = pair_front(e->pair);
  return arena_space_continue_index(back, &back->spaces[place], &front->spaces[place]);
}

/* ---- Switching and removing ---- */

static void take_over_current(struct arena *back, void *context)
{
  const struct space_table *table = context;

  ARENA_FOR_EACH_SPACE (back, in)
    in->is_current = table->entries[in - back->spaces].is_current;
}

err_t engine_set_current(struct engine *e, struct span name, uint32_t generation)
{
  size_t place;

  TRY(find(e, name, generation, &place));
  if (e->spaces.entries[place].is_current)
    return ERR_OK;
  e->spaces.entries[space_table_find(&e->spaces, name, 0)].is_current = false;
  e->spaces.entries[place].is_current = true;
  const struct epoch epoch = engine_publish_next(e, NULL, 0);
  return engine_publish_edit(e, &epoch, take_over_current, &e->spaces);
}

/* A space on its way out of the arenas. */
struct removing {
  size_t place;
  struct arena_space taken[2];
  size_t n_taken;
};

static void take_space(struct arena *back, void *context)
{
  struct removing *removing = context;
  struct arena_space *in = &back->spaces[removing->place];

  removing->taken[removing->n_taken++] = *in;
  *in = (struct arena_space){ 0 };
}

/* Free what is in no arena any more. Nobody reads it: the last search in it has ended. */
static void free_taken(struct engine *e, struct removing *removing)
{
  for (size_t i = 0; i < removing->n_taken; i++)
    arena_space_close(&e->pair->arenas[i], &removing->taken[i]);
  if (removing->n_taken < 2)
    return;
  struct space *space = space_table_take(&e->spaces, removing->place);
  space_fini(space);
  mem_free(&space);
}

err_t engine_remove_space(struct engine *e, struct span name, uint32_t generation)
{
  struct removing removing = { 0 };

  TRY(find(e, name, generation, &removing.place));
  if (e->spaces.entries[removing.place].is_current)
    FAIL(ERR_SPACE, "generation %u is the current one of space %s: make another one current first", generation,
         log_quote(name));
  const struct epoch epoch = engine_publish_next(e, NULL, 0);
  err_code_t err = engine_publish_edit(e, &epoch, take_space, &removing);
  free_taken(e, &removing);
  return err;
}

/* ---- Counting ---- */

static uint64_t count_missing(const struct arena *a, const struct arena_space *present,
                              const struct arena_space *missing)
{
  uint64_t n = 0;

  for (size_t w = 0; w < bits_words(a->n_slots); w++)
    n += (uint64_t)__builtin_popcountll(present->has_part[w] & ~missing->has_part[w]);
  return n;
}

uint64_t engine_count_missing(struct engine *e, struct span name, uint32_t present_in, uint32_t missing_in)
{
  const struct arena *front = pair_acquire(e->pair);
  const struct arena_space *present = arena_space_find(front, name, present_in);
  const struct arena_space *missing = arena_space_find(front, name, missing_in);
  uint64_t n = present && missing ? count_missing(front, present, missing) : 0;

  pair_release(e->pair, front);
  return n;
}
