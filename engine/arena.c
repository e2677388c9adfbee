#include "engine/arena.h"

#include "base/mem.h"

static err_t init_space(const struct space *space, const struct backend *backend, size_t capacity,
                        struct arena_space *out)
{
  out->ops = backend->columns[space->similarity->kind];
  TRY(mem_reserve(capacity, sizeof *out->has_part, &out->has_part));
  return out->ops->open(space->model, capacity, &out->columns);
}

err_t arena_init(const struct space *spaces, size_t n_spaces, const struct backend *backend, size_t capacity,
                 size_t pair_bytes_per_item, struct arena *out)
{
  *out = (struct arena){ .capacity = capacity, .pair_bytes_per_item = pair_bytes_per_item, .n_spaces = n_spaces };
  TRY(mem_array(n_spaces, sizeof *out->spaces, &out->spaces));
  TRY(keys_init(capacity, &out->keys));
  for (size_t i = 0; i < n_spaces; i++)
    TRY(init_space(&spaces[i], backend, capacity, &out->spaces[i]));
  return ERR_OK;
}

void arena_fini(struct arena *a)
{
  for (size_t i = 0; a->spaces && i < a->n_spaces; i++) {
    if (a->spaces[i].columns)
      a->spaces[i].ops->close(&a->spaces[i].columns);
    mem_release(&a->spaces[i].has_part, a->capacity, sizeof *a->spaces[i].has_part);
  }
  mem_free(&a->spaces);
  keys_fini(&a->keys, a->n_slots);
  mem_free(&a->watermark);
}

static void drop_part(struct arena_space *space, uint32_t slot)
{
  if (!space->has_part[slot])
    return;
  space->ops->drop(space->columns, slot);
  space->has_part[slot] = 0;
  space->n_items--;
}

static void drop_all_parts(struct arena *a, uint32_t slot)
{
  for (size_t i = 0; i < a->n_spaces; i++)
    drop_part(&a->spaces[i], slot);
}

static void move_slot(struct arena *a, uint32_t from, uint32_t to)
{
  for (size_t i = 0; i < a->n_spaces; i++) {
    struct arena_space *space = &a->spaces[i];
    if (space->has_part[from]) {
      space->ops->move(space->columns, from, to);
      space->has_part[from] = 0;
      space->has_part[to] = 1;
    }
  }
  keys_move(&a->keys, from, to);
}

/* A tombstone: the last item moves into the hole, so that slots stay dense. */
static void delete_item(struct arena *a, uint32_t slot)
{
  uint32_t last = (uint32_t)a->n_slots - 1;

  drop_all_parts(a, slot);
  keys_remove(&a->keys, slot);
  if (slot != last)
    move_slot(a, last, slot);
  a->n_slots--;
}

static err_t insert_item(struct arena *a, struct span key, uint32_t *slot)
{
  if (a->n_slots == a->capacity)
    FAIL(ERR_FULL,
         "the catalogue has more than catalogue.max_items = %zu items: raise it; each item more takes about %zu bytes",
         a->capacity, a->pair_bytes_per_item);
  *slot = (uint32_t)a->n_slots;
  TRY(keys_put(&a->keys, *slot, key));
  a->n_slots++;
  return ERR_OK;
}

static err_t put_item(struct arena *a, uint32_t slot, const struct prepared_change *change)
{
  if (change->change->is_whole)
    drop_all_parts(a, slot);
  for (size_t i = 0; i < change->change->n_parts; i++) {
    struct arena_space *space = &a->spaces[change->parts[i].space];
    TRY(space->ops->put(space->columns, slot, !space->has_part[slot], change->parts[i].bytes));
    space->n_items += !space->has_part[slot];
    space->has_part[slot] = 1;
  }
  return ERR_OK;
}

/* Changes between the fetching of a key's place and its use. */
enum { KEYS_AHEAD = 8 };

err_t arena_apply(struct arena *a, const struct prepared_change *changes, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (n - i > KEYS_AHEAD)
      keys_fetch(&a->keys, changes[i + KEYS_AHEAD].change->key);
    uint32_t slot = keys_find(&a->keys, changes[i].change->key);
    if (changes[i].change->is_delete) {
      if (slot != KEYS_NONE)
        delete_item(a, slot);
      continue;
    }
    if (slot == KEYS_NONE)
      TRY(insert_item(a, changes[i].change->key, &slot));
    TRY(put_item(a, slot, &changes[i]));
  }
  return ERR_OK;
}

/* Index of the first position that is not before the partition. */
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
