/* SPDX-License-Identifier: Apache-2.0 */
/* Loads new items into an empty arena, on all its backends, or the items of the other arena. */
#include "engine/arena/arena_load.h"

#include <assert.h>

#include "engine/arena/arena_alive.h"
#include "engine/arena/arena_space.h"

/* The table entry of a key is prefetched this many items before it is written. */
enum { KEYS_AHEAD = 8 };

static_assert(LOAD_BLOCK_SLOTS % 64 == 0, "a word of has_part belongs to one thread");

void arena_load_begin(struct arena *a, struct arena_load *out)
{
  *out = (struct arena_load){ .arena = a, .lock = PTHREAD_MUTEX_INITIALIZER };
  ARENA_FOR_EACH_SPACE (a, space)
    arena_space_defer_index(a, space);
}

static void note_end(struct arena_load *l, size_t end)
{
  size_t known = atomic_load(&l->end);

  while (known < end && !atomic_compare_exchange_weak(&l->end, &known, end))
    ;
}

void arena_load_abandon(struct arena_load *l)
{
  l->arena->n_slots = l->arena->high_slots = l->end;
}

/* Put a part into the columns of one backend. */
static err_t load_columns(struct arena_load *l, struct columns *columns, uint32_t slot, const uint8_t *bytes)
{
  if (columns->ops->load)
    return columns->ops->load(columns, slot, bytes);
  pthread_mutex_lock(&l->lock);
  err_code_t err = columns->ops->put(columns, slot, true, bytes);
  pthread_mutex_unlock(&l->lock);
  return err;
}

static err_t load_part(struct arena_load *l, struct arena_space *space, uint32_t slot, const uint8_t *bytes)
{
  ARENA_FOR_EACH_BACKEND (l->arena, b) {
    err_code_t err = load_columns(l, space->on[b], slot, bytes);
    if (err != ERR_OK)
      TRY(backends_fail(l->arena->backends, b, err));
  }
  bits_set(space->has_part, slot);
  return ERR_OK;
}

static err_t load_item(struct arena_load *l, uint32_t slot, const struct prepared_change *change)
{
  const struct item_change *item = change->change;
  struct arena *a = l->arena;
  struct key_text *text;

  TRY(key_text_make(item->key, &text));
  keys_load(&a->keys, slot, text);
  for (size_t i = 0; i < change->n_parts; i++) {
    if (change->parts[i].bytes)
      TRY(load_part(l, &a->spaces[change->parts[i].space], slot, change->parts[i].bytes));
  }
  for (size_t i = 0; i < item->n_attributes; i++) {
    if (change->attributes[i] != ATTRIBUTE_NONE)
      TRY(attribute_columns_load(a->attributes, slot, change->attributes[i], &item->attributes[i].value));
  }
  return ERR_OK;
}

err_t arena_load_put(struct arena_load *l, size_t first, const struct prepared_change *changes, size_t n)
{
  struct arena *a = l->arena;

  if (n > a->capacity || first > a->capacity - n)
    return arena_fail_full(a);
  note_end(l, first + n);
  for (size_t i = 0; i < n; i++) {
    if (n - i > KEYS_AHEAD)
      keys_prefetch(&a->keys, changes[i + KEYS_AHEAD].change->key);
    TRY(load_item(l, (uint32_t)(first + i), &changes[i]));
  }
  return ERR_OK;
}

/* Copy each run of slots that have a part. */
static err_t copy_runs(struct columns *columns, const struct columns *from, const uint64_t *has_part, uint32_t first,
                       uint32_t end)
{
  uint32_t slot = first;

  while (slot < end) {
    uint32_t run = slot;
    while (slot < end && bits_get(has_part, slot))
      slot++;
    if (slot > run)
      TRY(columns->ops->copy(columns, from, run, slot - run));
    else
      slot++;
  }
  return ERR_OK;
}

/* Where one thread copies at a time, it copies all slots at once: on a GPU each call takes as long as any other. */
static err_t copy_columns(struct arena_load *l, struct columns *columns, const struct columns *from,
                          const uint64_t *has_part, uint32_t first, uint32_t end)
{
  if (columns->ops->load)
    return copy_runs(columns, from, has_part, first, end);
  pthread_mutex_lock(&l->lock);
  err_code_t err = columns->ops->copy(columns, from, first, end - first);
  pthread_mutex_unlock(&l->lock);
  return err;
}

/* Copy the parts of a space. */
static err_t copy_space(struct arena_load *l, size_t space, const struct arena *from, uint32_t first, uint32_t end)
{
  struct arena *a = l->arena;
  const uint64_t *has_part = from->spaces[space].has_part;

  while (first < end && !bits_get(has_part, first))
    first++;
  while (first < end && !bits_get(has_part, end - 1))
    end--;
  if (first == end)
    return ERR_OK;
  ARENA_FOR_EACH_BACKEND (a, b) {
    err_code_t err = copy_columns(l, a->spaces[space].on[b], from->spaces[space].on[b], has_part, first, end);
    if (err != ERR_OK)
      TRY(backends_fail(a->backends, b, err));
  }
  for (size_t slot = first; slot < end; slot++) {
    if (bits_get(has_part, slot))
      bits_set(a->spaces[space].has_part, slot);
  }
  return ERR_OK;
}

err_t arena_load_copy(struct arena_load *l, const struct arena *from, size_t block)
{
  struct arena *a = l->arena;
  size_t first = block * LOAD_BLOCK_SLOTS, end = first + LOAD_BLOCK_SLOTS;

  end = end < from->n_slots ? end : from->n_slots;
  note_end(l, end);
  for (size_t slot = first; slot < end; slot++) {
    if (end - slot > KEYS_AHEAD)
      keys_prefetch(&a->keys, keys_get(&from->keys, (uint32_t)slot + KEYS_AHEAD));
    keys_load(&a->keys, (uint32_t)slot, key_text_keep(from->keys.texts[slot]));
  }
  ARENA_FOR_EACH_SPACE (a, space)
    TRY(copy_space(l, (size_t)(space - a->spaces), from, (uint32_t)first, (uint32_t)end));
  TRY(attribute_columns_copy(a->attributes, from->attributes, first, end - first));
  return ERR_OK;
}

err_t arena_load_finish(struct arena_load *l)
{
  struct arena *a = l->arena;

  a->n_slots = a->high_slots = l->end;
  change_log_touch_all(&a->slots);
  ARENA_FOR_EACH_SPACE (a, space) {
    space->n_items = bits_count(space->has_part, bits_words(a->n_slots));
    if (space->is_current || 2 * space->n_items >= a->n_slots) /* the parts of another one may be still to come */
      TRY(arena_space_build_index(a, space));
  }
  TRY(attribute_columns_finish(a->attributes, a->n_slots));
  arena_alive_look_at_all(a);
  return arena_flush(a);
}
