/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of one space on all backends, and the bits of its items. */
#include "engine/arena/arena_space.h"

#include "base/mem.h"

static err_t open_columns(const struct arena *a, const struct space *space, bool may_lose_a_backend,
                          struct arena_space *out)
{
  ARENA_FOR_EACH_BACKEND (a, b) {
    const struct columns_ops *ops = a->backends->at[b]->columns[space->similarity->kind];
    err_code_t err = ops->open(space->model, a->capacity, &out->on[b]);
    if (err != ERR_OK && !may_lose_a_backend)
      return err;
    if (err != ERR_OK)
      TRY(backends_fail(a->backends, b, err));
  }
  return ERR_OK;
}

err_t arena_space_open(const struct arena *a, const struct space *space, bool is_current, bool may_lose_a_backend,
                       struct arena_space *out)
{
  *out = (struct arena_space){ .space = space, .is_current = is_current };
  TRY(change_log_init(&out->touched));
  TRY(mem_reserve(bits_words(a->capacity), sizeof *out->has_part, &out->has_part));
  if (!lifetimes_plan_is_empty(&a->lifetimes.plan))
    TRY(mem_reserve(bits_words(a->capacity), sizeof *out->alive, &out->alive));
  return open_columns(a, space, may_lose_a_backend, out);
}

void arena_space_defer_index(const struct arena *a, const struct arena_space *space)
{
  ARENA_FOR_EACH_BACKEND (a, b) {
    if (space->on[b]->ops->defer_index)
      space->on[b]->ops->defer_index(space->on[b]);
  }
}

err_t arena_space_build_index(const struct arena *a, const struct arena_space *space)
{
  ARENA_FOR_EACH_BACKEND (a, b) {
    if (space->on[b]->ops->build_index)
      TRY(space->on[b]->ops->build_index(space->on[b], space->has_part, a->n_slots));
  }
  return ERR_OK;
}

err_t arena_space_continue_index(const struct arena *a, const struct arena_space *space,
                                 const struct arena_space *other)
{
  ARENA_FOR_EACH_BACKEND (a, b) {
    if (space->on[b]->ops->continue_index)
      TRY(space->on[b]->ops->continue_index(space->on[b], other->on[b], space->has_part, a->n_slots));
  }
  return ERR_OK;
}

bool arena_space_has_index(const struct arena *a, const struct arena_space *space)
{
  const struct columns *columns = space->on[atomic_load(&a->backends->first)];

  return !columns->ops->has_index || columns->ops->has_index(columns);
}

const struct arena_space *arena_space_find(const struct arena *a, struct span name, uint32_t generation)
{
  ARENA_FOR_EACH_SPACE (a, in) {
    if (space_is(in->space, in->is_current, name, generation))
      return in;
  }
  return NULL;
}

void arena_space_close(const struct arena *a, struct arena_space *space)
{
  for (size_t b = 0; b < BACKENDS_MAX; b++) {
    if (space->on[b])
      space->on[b]->ops->close(&space->on[b]);
  }
  change_log_fini(&space->touched);
  mem_release(&space->has_part, bits_words(a->capacity), sizeof *space->has_part);
  mem_release(&space->alive, bits_words(a->capacity), sizeof *space->alive);
  *space = (struct arena_space){ 0 };
}
