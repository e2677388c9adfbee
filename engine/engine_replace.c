/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the whole catalogue: new items are loaded into the back arena, and copied to the other one after the flip.
 */
#include "base/parallel.h"
#include "base/progress.h"
#include "engine/arena/arena_load.h"
#include "engine/engine_publish.h"

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
  const struct arena_plan plan = engine_arena_plan(e);
  struct arena *back = pair_back(e->pair);

  arena_fini(back);
  *out = back;
  return arena_init(&plan, back);
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
  TRY(engine_publish_to_back(e, &epoch, NULL, 0));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  TRY(copy_to_back(e, n_threads));
  TRY(engine_publish_to_back(e, &epoch, NULL, 0));
  engine_publish_note_time(e);
  return ERR_OK;
}
