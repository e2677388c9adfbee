/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the bits of alive items in step with parts, attributes and time. */
#include "engine/arena/arena_alive.h"

static void look_in_space(struct arena_space *space, uint32_t slot, bool is_dead)
{
  bool was_alive = bits_get(space->alive, slot), is_alive = bits_get(space->has_part, slot) && !is_dead;

  if (is_alive == was_alive)
    return;
  change_log_touch(&space->touched, slot);
  space->alive[slot / 64] ^= UINT64_C(1) << (slot % 64);
  space->n_alive = is_alive ? space->n_alive + 1 : space->n_alive - 1;
}

void arena_alive_look(struct arena *a, uint32_t slot)
{
  if (lifetimes_plan_is_empty(&a->lifetimes.plan))
    return;
  lifetimes_look(&a->lifetimes, a->attributes, slot);
  bool is_dead = lifetimes_dead(&a->lifetimes, slot / 64) >> (slot % 64) & 1;
  ARENA_FOR_EACH_SPACE (a, space)
    look_in_space(space, slot, is_dead);
}

void arena_alive_look_at_all(struct arena *a)
{
  if (!lifetimes_plan_is_empty(&a->lifetimes.plan))
    lifetimes_look_at_all(&a->lifetimes, a->n_slots);
}

/* Bring the bits of a word in line with what has died and come alive. */
static void refresh_word(struct arena *a, size_t word)
{
  uint64_t dead = lifetimes_dead(&a->lifetimes, word);

  ARENA_FOR_EACH_SPACE (a, space) {
    uint64_t alive = space->has_part[word] & ~dead;
    if (alive != space->alive[word])
      change_log_touch(&space->touched, word * 64);
    space->n_alive += (uint64_t)__builtin_popcountll(alive);
    space->n_alive -= (uint64_t)__builtin_popcountll(space->alive[word]);
    space->alive[word] = alive;
  }
}

static bool advance_block(struct arena *a, size_t block)
{
  size_t first = block * LIFETIMES_BLOCK_WORDS, end = first + LIFETIMES_BLOCK_WORDS, n = bits_words(a->n_slots);
  bool has_changed = lifetimes_scan(&a->lifetimes, a->attributes, block);

  for (size_t w = first; w < end && w < n; w++)
    refresh_word(a, w);
  return has_changed;
}

bool arena_alive_advance(struct arena *a, int64_t time_ms)
{
  struct lifetimes *l = &a->lifetimes;
  bool has_changed = false;

  if (lifetimes_plan_is_empty(&l->plan))
    return false;
  l->time_ms = time_ms;
  if (l->next_ms > time_ms)
    return false;
  for (size_t first = 0; first < a->n_slots; first += LIFETIMES_BLOCK_SLOTS) {
    if (lifetimes_is_due(l, first / LIFETIMES_BLOCK_SLOTS))
      has_changed |= advance_block(a, first / LIFETIMES_BLOCK_SLOTS);
  }
  lifetimes_find_next(l, a->n_slots);
  return has_changed;
}
