/* SPDX-License-Identifier: Apache-2.0 */
/* The left-right scheme, seen from the writer: the back arena, the flip, the other arena. */
#include "engine/engine_publish.h"

#include "engine/arena/arena_alive.h"

int64_t engine_publish_time(struct engine *e)
{
  if (lifetimes_plan_is_empty(&e->lifetimes))
    return 0;
  int64_t now_ms = engine_unix_ms(e);
  e->time_ms = now_ms > e->time_ms ? now_ms : e->time_ms;
  return e->time_ms;
}

struct epoch engine_publish_next(struct engine *e, const struct position *positions, size_t n)
{
  return (struct epoch){ pair_back(e->pair)->epoch + 1, engine_publish_time(e), positions, n };
}

void engine_publish_note_time(struct engine *e)
{
  atomic_store(&e->next_change_ms, pair_back(e->pair)->lifetimes.next_ms);
}

err_t engine_publish_to_back(struct engine *e, const struct epoch *epoch, struct prepared_change *changes, size_t n)
{
  struct arena *back = pair_back(e->pair);

  arena_alive_advance(back, epoch->time_ms);
  TRY(arena_apply(back, changes, n));
  TRY(arena_advance(back, epoch->positions, epoch->n_positions));
  arena_date(back, epoch->number);
  return ERR_OK;
}

err_t engine_publish(struct engine *e, const struct epoch *epoch, struct prepared_change *changes, size_t n)
{
  TRY(engine_publish_to_back(e, epoch, changes, n));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  TRY(engine_publish_to_back(e, epoch, changes, n));
  engine_publish_note_time(e);
  return ERR_OK;
}

struct prepare_target engine_publish_target(const struct engine *e)
{
  return (struct prepare_target){ &e->spaces, &e->attributes, e->kernels, e->team, SPACE_TABLE_NONE };
}

err_t engine_publish_changes(struct engine *e, const struct prepare_target *target, const struct item_change *changes,
                             size_t n, const struct position *positions, size_t n_positions)
{
  struct prepared_change *prepared;

  region_reset(&e->batch);
  TRY(prepare_changes(target, changes, n, &e->batch, &prepared));
  const struct epoch epoch = engine_publish_next(e, positions, n_positions);
  err_code_t err = engine_publish(e, &epoch, prepared, n);
  prepare_drop_texts(prepared, n);
  return err;
}

err_t engine_publish_edit(struct engine *e, const struct epoch *epoch, engine_edit edit, void *context)
{
  edit(pair_back(e->pair), context);
  TRY(engine_publish_to_back(e, epoch, NULL, 0));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  edit(pair_back(e->pair), context);
  TRY(engine_publish_to_back(e, epoch, NULL, 0));
  engine_publish_note_time(e);
  return ERR_OK;
}
