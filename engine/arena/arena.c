/* SPDX-License-Identifier: Apache-2.0 */
/* Applies changes to an arena, on all its backends: puts, deletes that keep slots dense, and memory that is given back.
 */
#include "engine/arena/arena.h"

#include <assert.h>

#include "base/mem.h"
#include "base/size.h"
#include "engine/arena/arena_alive.h"
#include "engine/arena/arena_space.h"

/* Open copies of the attributes, which are empty, on the backend that keeps some. */
static err_t open_copies(struct arena *a, const struct attributes *attributes)
{
  ARENA_FOR_EACH_BACKEND (a, b) {
    const struct backend *backend = a->backends->at[b];
    if (attributes->n == 0 || !backend->attributes.open)
      continue;
    err_code_t err = backend->attributes.open(attributes, a->capacity, &a->copies[b]);
    if (err != ERR_OK)
      TRY(backends_fail(a->backends, b, err));
    else
      TRY(attribute_columns_mark(a->attributes));
  }
  return ERR_OK;
}

err_t arena_init(const struct arena_plan *plan, struct arena *out)
{
  *out = (struct arena){ .capacity = plan->capacity,
                         .pair_bytes_per_item = plan->pair_bytes_per_item,
                         .backends = plan->backends };
  TRY(change_log_init(&out->slots));
  TRY(mem_array(plan->spaces->capacity, sizeof *out->spaces, &out->spaces));
  TRY(keys_init(plan->capacity, plan->hash, &out->keys));
  TRY(lifetimes_init(&plan->lifetimes, plan->capacity, &out->lifetimes));
  for (size_t i = 0; i < plan->spaces->n; i++) {
    const struct space_entry *entry = &plan->spaces->entries[i];
    out->n_spaces = i + 1;
    if (entry->space)
      TRY(arena_space_open(out, entry->space, entry->is_current, true, &out->spaces[i]));
  }
  TRY(attribute_columns_open(plan->attributes, plan->kernels, plan->capacity, &out->attributes));
  return open_copies(out, plan->attributes);
}

void arena_fini(struct arena *a)
{
  ARENA_FOR_EACH_SPACE (a, space)
    arena_space_close(a, space);
  mem_free(&a->spaces);
  change_log_fini(&a->slots);
  for (size_t b = 0; b < BACKENDS_MAX; b++) {
    if (a->copies[b])
      a->backends->at[b]->attributes.close(&a->copies[b]);
  }
  attribute_columns_close(&a->attributes);
  lifetimes_fini(&a->lifetimes);
  keys_fini(&a->keys, a->n_slots);
  mem_free(&a->watermark);
}

static void drop_part(const struct arena *a, struct arena_space *space, uint32_t slot)
{
  if (!bits_get(space->has_part, slot))
    return;
  ARENA_FOR_EACH_BACKEND (a, b)
    space->on[b]->ops->drop(space->on[b], slot);
  bits_clear(space->has_part, slot);
  change_log_touch(&space->touched, slot);
  space->n_items--;
}

/* Drop all parts and attributes of a slot. */
static void drop_all(struct arena *a, uint32_t slot)
{
  ARENA_FOR_EACH_SPACE (a, space)
    drop_part(a, space, slot);
  attribute_columns_drop(a->attributes, slot);
}

static err_t move_slot(struct arena *a, uint32_t from, uint32_t to)
{
  ARENA_FOR_EACH_SPACE (a, space) {
    if (bits_get(space->has_part, from)) {
      ARENA_FOR_EACH_BACKEND (a, b)
        space->on[b]->ops->move(space->on[b], from, to);
      bits_clear(space->has_part, from);
      bits_set(space->has_part, to);
    }
  }
  keys_move(&a->keys, from, to);
  return attribute_columns_move(a->attributes, from, to);
}

/* Delete an item. The last item moves into the hole, so that slots stay dense. */
static err_t delete_item(struct arena *a, uint32_t slot)
{
  uint32_t last = (uint32_t)a->n_slots - 1;

  drop_all(a, slot);
  keys_remove(&a->keys, slot);
  a->n_slots--;
  change_log_touch(&a->slots, slot);
  change_log_touch(&a->slots, last);
  if (slot != last)
    TRY(move_slot(a, last, slot));
  arena_alive_look(a, last);
  arena_alive_look(a, slot);
  return ERR_OK;
}

err_t arena_fail_full(const struct arena *a)
{
  FAIL(ERR_FULL,
       "the catalogue has more than catalogue.max_items = %zu items: raise it; "
       "each additional item takes about %zu bytes",
       a->capacity, a->pair_bytes_per_item);
}

static err_t insert_item(struct arena *a, struct prepared_change *change, uint32_t *slot)
{
  if (a->n_slots == a->capacity)
    return arena_fail_full(a);
  *slot = (uint32_t)a->n_slots;
  if (!change->text)
    TRY(key_text_make(change->change->key, &change->text));
  keys_put(&a->keys, *slot, key_text_keep(change->text));
  a->n_slots++;
  change_log_touch(&a->slots, *slot);
  a->high_slots = a->n_slots > a->high_slots ? a->n_slots : a->high_slots;
  return ERR_OK;
}

static err_t put_part(const struct arena *a, struct arena_space *space, uint32_t slot, const uint8_t *prepared)
{
  bool is_new = !bits_get(space->has_part, slot);

  ARENA_FOR_EACH_BACKEND (a, b) {
    err_code_t err = space->on[b]->ops->put(space->on[b], slot, is_new, prepared);
    if (err != ERR_OK)
      TRY(backends_fail(a->backends, b, err));
  }
  if (is_new)
    change_log_touch(&space->touched, slot);
  space->n_items += is_new;
  bits_set(space->has_part, slot);
  return ERR_OK;
}

/* Put a part, or drop the one that was there before the space refused its next state. */
static err_t take_part(const struct arena *a, uint32_t slot, const struct prepared_part *part)
{
  struct arena_space *space = &a->spaces[part->space];

  if (part->bytes)
    return put_part(a, space, slot, part->bytes);
  drop_part(a, space, slot);
  return ERR_OK;
}

static err_t put_item(struct arena *a, uint32_t slot, const struct prepared_change *change)
{
  const struct item_change *item = change->change;

  if (item->is_whole)
    drop_all(a, slot);
  for (size_t i = 0; i < change->n_parts; i++)
    TRY(take_part(a, slot, &change->parts[i]));
  for (size_t i = 0; i < item->n_attributes; i++) {
    if (change->attributes[i] != ATTRIBUTE_NONE)
      TRY(attribute_columns_put(a->attributes, slot, change->attributes[i], &item->attributes[i].value));
  }
  arena_alive_look(a, slot);
  return ERR_OK;
}

static err_t flush_space(const struct arena *a, const struct arena_space *space)
{
  ARENA_FOR_EACH_BACKEND (a, b) {
    err_code_t err = space->on[b]->ops->flush ? space->on[b]->ops->flush(space->on[b]) : ERR_OK;
    if (err != ERR_OK)
      TRY(backends_fail(a->backends, b, err));
  }
  return ERR_OK;
}

static err_t flush_attributes(const struct arena *a)
{
  ARENA_FOR_EACH_BACKEND (a, b) {
    err_code_t err = a->copies[b] ? a->backends->at[b]->attributes.flush(a->copies[b], a->attributes) : ERR_OK;
    if (err != ERR_OK)
      TRY(backends_fail(a->backends, b, err));
  }
  return ERR_OK;
}

err_t arena_flush(struct arena *a)
{
  ARENA_FOR_EACH_SPACE (a, space)
    TRY(flush_space(a, space));
  return flush_attributes(a);
}

/* Give back memory when the catalogue has become much smaller. This happens only in large steps: slots are freed and
 * reused all the time, and pages that are given back and reused cause page faults. Nobody reads this arena meanwhile.
 */
static void give_back(struct arena *a)
{
  enum { HALF_FROM = 4096 };
  size_t from = a->n_slots, to = a->high_slots;
  bool is_far_below = to >= HALF_FROM && from <= to / 2;

  if (to == 0 || (from > 0 && !is_far_below))
    return;
  ARENA_FOR_EACH_SPACE (a, space) {
    mem_give_back(space->has_part, bits_words(from), bits_words(to), sizeof *space->has_part);
    if (space->alive)
      mem_give_back(space->alive, bits_words(from), bits_words(to), sizeof *space->alive);
    ARENA_FOR_EACH_BACKEND (a, b) {
      if (space->on[b]->ops->trim)
        space->on[b]->ops->trim(space->on[b], from, to);
    }
  }
  attribute_columns_trim(a->attributes, from, to);
  lifetimes_trim(&a->lifetimes, from, to);
  keys_trim(&a->keys, from, to);
  a->high_slots = from;
}

/* Changes whose memory is fetched together. */
enum { GROUP = 32 };

static_assert(KEYS_NONE == COLUMNS_NEW_SLOT, "a key without a slot gets a new one");

static void prefetch_part(const struct arena *a, uint32_t slot, const struct prepared_part *part, int step)
{
  const struct arena_space *space = &a->spaces[part->space];

  ARENA_FOR_EACH_BACKEND (a, b) {
    struct columns *columns = space->on[b];
    if (part->bytes && columns->ops->prefetch)
      columns->ops->prefetch(columns, slot, part->bytes, step);
  }
}

/* Fetch what a group of changes will touch. A key that has another slot when its turn comes gained nothing. */
static void prefetch_group(const struct arena *a, const struct prepared_change *changes, size_t n)
{
  struct span keys[GROUP];
  uint32_t slots[GROUP];

  for (size_t i = 0; i < n; i++)
    keys[i] = changes[i].change->key;
  keys_find_all(&a->keys, keys, n, slots);
  for (int step = 0; step < COLUMNS_PREFETCH_STEPS; step++) {
    for (size_t i = 0; i < n; i++) {
      for (size_t p = 0; p < changes[i].n_parts; p++)
        prefetch_part(a, slots[i], &changes[i].parts[p], step);
    }
  }
}

err_t arena_apply(struct arena *a, struct prepared_change *changes, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (i % GROUP == 0)
      prefetch_group(a, changes + i, size_min(GROUP, n - i));
    uint32_t slot = keys_find(&a->keys, changes[i].change->key);
    if (changes[i].change->is_delete) {
      if (slot != KEYS_NONE)
        TRY(delete_item(a, slot));
      continue;
    }
    if (slot == KEYS_NONE)
      TRY(insert_item(a, &changes[i], &slot));
    TRY(put_item(a, slot, &changes[i]));
  }
  TRY(arena_flush(a));
  give_back(a);
  return ERR_OK;
}

void arena_date(struct arena *a, uint64_t epoch)
{
  a->epoch = epoch;
  change_log_date(&a->slots, epoch);
  ARENA_FOR_EACH_SPACE (a, space)
    change_log_date(&space->touched, epoch);
  attribute_columns_date(a->attributes, epoch);
}

/* Return the index of the first position whose partition is not lower than the given one. */
static size_t lower_bound(const struct arena *a, int32_t partition)
{
  size_t i = 0;

  while (i < a->n_watermark && a->watermark[i].partition < partition)
    i++;
  return i;
}

err_t arena_advance(struct arena *a, const struct position *positions, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    size_t at = lower_bound(a, positions[i].partition);
    if (at == a->n_watermark || a->watermark[at].partition != positions[i].partition) {
      TRY(mem_grow(a->n_watermark + 1, sizeof *a->watermark, &a->watermark_capacity, &a->watermark));
      memmove(a->watermark + at + 1, a->watermark + at, (a->n_watermark - at) * sizeof *a->watermark);
      a->n_watermark++;
    }
    a->watermark[at] = positions[i];
  }
  return ERR_OK;
}

void arena_forget_watermark(struct arena *a)
{
  a->n_watermark = 0;
}

int64_t arena_next(const struct arena *a, int32_t partition)
{
  size_t at = lower_bound(a, partition);

  return at < a->n_watermark && a->watermark[at].partition == partition ? a->watermark[at].next : 0;
}
