/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle of the store's tests: the simplest model of a store. It has an array of items in slot order, and the state
 * of each key in each partition. Beside it is a model of an engine that applies only the effects that the store
 * reports.
 *
 * The bytes of a part are computed from a number, its seed, so the oracle keeps only seeds. Seed 0: no such part.
 */
#ifndef TESTS_SUPPORT_STORE_ORACLE_H
#define TESTS_SUPPORT_STORE_ORACLE_H

#include "base/item.h"
#include "base/mem.h"
#include "base/region.h"
#include "store/record.h"
#include "store/store.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"

enum { ORACLE_SPACES = 4 };

/* A change, an item, or the state of a key in a partition. */
struct oracle_item {
  uint32_t id; /* number of the key */
  bool is_delete;
  bool is_whole;
  uint64_t seeds[ORACLE_SPACES];
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms; /* 0: computed from offset and partition */
  uint64_t generation;
};

/* An item of the engine's model: its parts as a record. */
struct oracle_served {
  uint8_t *record;
  size_t n;
};

struct oracle {
  struct oracle_item *items; /* in slot order */
  size_t n;
  size_t capacity;
  struct oracle_item *states; /* one for each key and partition, including tombstones */
  size_t n_states;
  size_t states_capacity;
  uint64_t generation; /* generation of the log; it starts at 0, only changes matter */
  struct oracle_served *served;
  size_t n_served;
  size_t served_capacity;
};

static inline void oracle_fini(struct oracle *o)
{
  for (size_t i = 0; i < o->n_served; i++)
    free(o->served[i].record);
  mem_free(&o->items);
  mem_free(&o->states);
  mem_free(&o->served);
  *o = (struct oracle){ 0 };
}

/* Make the key of an id. There are keys of 1 byte, of 256 bytes, of text and of any bytes. */
static inline struct span oracle_key(uint32_t id, struct region *region)
{
  uint8_t bytes[ITEM_KEY_MAX];
  struct dice dice = { id };
  struct span key;
  size_t n = id % 5 == 0 && id < 250 ? 1 : id % 7 == 0 ? ITEM_KEY_MAX : 4 + dice_below(&dice, 40);

  for (size_t i = 0; i < n; i++)
    bytes[i] = id % 2 ? (uint8_t)dice_u64(&dice) : (uint8_t)('a' + dice_below(&dice, 26));
  if (n == 1)
    bytes[0] = (uint8_t)id;
  else
    memcpy(bytes, &id, sizeof id);
  assert_ok(region_copy(region, span_of(bytes, n), &key));
  return key;
}

static inline struct floats oracle_floats(struct dice *dice, size_t n, struct region *region)
{
  float *v;

  assert_ok(region_array(region, n, sizeof *v, &v));
  dice_fill(dice, v, n, 100.0f);
  return (struct floats){ v, n };
}

static inline struct span oracle_bytes(struct dice *dice, size_t n, struct region *region)
{
  uint8_t *p;

  assert_ok(region_array(region, n, 1, &p));
  for (size_t i = 0; i < n; i++)
    p[i] = (uint8_t)dice_u64(dice);
  return span_of(p, n);
}

/* Make the part of a space from a seed. Sizes vary, and some records fill several pages. */
static inline struct part oracle_part(size_t space, uint64_t seed, struct region *region)
{
  static const char *const names[ORACLE_SPACES] = {
    "mol", "recjpq", "a space whose name is as long as any name may be, so of 64 bytes", "x"
  };
  struct dice dice = { seed };
  struct part part = { .space = span_of_str(names[space]) };

  if (space != 1)
    part.vector = oracle_floats(&dice, 1 + dice_below(&dice, seed % 13 == 0 ? 1200 : 70), region);
  if (space == 2)
    part.components = oracle_floats(&dice, 1 + dice_below(&dice, 64), region);
  if (space >= 2)
    part.item_gate = oracle_floats(&dice, 1 + dice_below(&dice, 9), region);
  if (space == 1 || space == 3)
    part.codes = oracle_bytes(&dice, 1 + dice_below(&dice, 33), region);
  return part;
}

static inline int64_t oracle_time(const struct oracle_item *item)
{
  return item->timestamp_ms ? item->timestamp_ms : item->offset * 7 + item->partition;
}

static inline struct item_change oracle_change(const struct oracle_item *item, struct region *region)
{
  struct part *parts;
  size_t n = 0;

  assert_ok(region_array(region, ORACLE_SPACES, sizeof *parts, &parts));
  for (size_t i = 0; i < ORACLE_SPACES; i++)
    if (item->seeds[i] && !item->is_delete)
      parts[n++] = oracle_part(i, item->seeds[i], region);
  return (struct item_change){
    .key = oracle_key(item->id, region),
    .is_delete = item->is_delete,
    .is_whole = item->is_whole,
    .parts = parts,
    .n_parts = n,
    .partition = item->partition,
    .offset = item->offset,
    .timestamp_ms = oracle_time(item),
  };
}

static inline struct oracle_item *oracle_find(const struct oracle *o, uint32_t id)
{
  for (size_t i = 0; i < o->n; i++)
    if (o->items[i].id == id)
      return &o->items[i];
  return NULL;
}

static inline struct oracle_item *oracle_push(struct oracle_item **items, size_t *n, size_t *capacity)
{
  assert_ok(mem_grow(*n + 1, sizeof **items, capacity, items));
  return &(*items)[(*n)++];
}

/* Find the state of a key in a partition, of the current generation. */
static inline struct oracle_item *oracle_state(const struct oracle *o, uint32_t id, int32_t partition)
{
  for (size_t i = 0; i < o->n_states; i++)
    if (o->states[i].id == id && o->states[i].partition == partition && o->states[i].generation == o->generation)
      return &o->states[i];
  return NULL;
}

/* Apply a change to a state. A put keeps the former parts, a tombstone drops them. */
static inline void oracle_fold(struct oracle_item *state, const struct oracle_item *change)
{
  bool is_fresh = state->is_delete || change->is_delete || change->is_whole;

  for (size_t i = 0; i < ORACLE_SPACES; i++)
    if (change->seeds[i] || is_fresh)
      state->seeds[i] = change->is_delete ? 0 : change->seeds[i];
  state->id = change->id;
  state->is_delete = change->is_delete;
  state->partition = change->partition;
  state->offset = change->offset;
  state->timestamp_ms = oracle_time(change);
}

/* Find the state that is the item: the newest one by time, on a tie that of the higher partition. NULL: no state. */
static inline const struct oracle_item *oracle_winner(const struct oracle *o, uint32_t id)
{
  const struct oracle_item *best = NULL;

  for (size_t i = 0; i < o->n_states; i++) {
    const struct oracle_item *s = &o->states[i];
    if (s->id != id || s->generation != o->generation)
      continue;
    if (!best || s->timestamp_ms > best->timestamp_ms ||
        (s->timestamp_ms == best->timestamp_ms && s->partition > best->partition))
      best = s;
  }
  return best;
}

/* Make the winning state of a key its item. Did the item change? */
static inline bool oracle_settle(struct oracle *o, uint32_t id)
{
  const struct oracle_item *winner = oracle_winner(o, id);
  struct oracle_item *item = oracle_find(o, id);

  if (winner->is_delete) {
    if (item)
      *item = o->items[--o->n];
    return item;
  }
  if (item && item->partition == winner->partition && item->offset == winner->offset &&
      item->generation == winner->generation)
    return false;
  if (!item)
    item = oracle_push(&o->items, &o->n, &o->capacity);
  *item = *winner;
  return true;
}

/* Apply a change. Returns the effect that the store should report. */
static inline enum store_effect oracle_apply(struct oracle *o, const struct oracle_item *change)
{
  struct oracle_item *state = oracle_state(o, change->id, change->partition);
  const struct oracle_item *item = oracle_find(o, change->id);

  if (state && change->offset <= state->offset)
    return STORE_SKIPPED;
  if (!state) {
    state = oracle_push(&o->states, &o->n_states, &o->states_capacity);
    *state = (struct oracle_item){ .is_delete = true };
    if (item && item->generation < o->generation)
      *state = *item; /* the item of a forgotten log is the base of the new state */
    state->generation = o->generation;
  }
  oracle_fold(state, change);
  if (oracle_settle(o, change->id))
    return STORE_APPLIED;
  return change->is_delete && !oracle_find(o, change->id) ? STORE_SKIPPED : STORE_ASIDE;
}

static inline const struct part *oracle_find_part(const struct item_change *item, struct span space)
{
  for (size_t i = 0; i < item->n_parts; i++)
    if (span_equal(item->parts[i].space, space))
      return &item->parts[i];
  return NULL;
}

static inline bool oracle_floats_equal(struct floats a, struct floats b)
{
  return span_equal(span_of(a.v, a.n * sizeof(float)), span_of(b.v, b.n * sizeof(float)));
}

/* Do two items have the same parts, bit for bit, in any order? */
static inline bool oracle_has_same_parts(const struct item_change *a, const struct item_change *b)
{
  if (!span_equal(a->key, b->key) || a->n_parts != b->n_parts)
    return false;
  for (size_t i = 0; i < a->n_parts; i++) {
    const struct part *p = &a->parts[i];
    const struct part *q = oracle_find_part(b, p->space);
    if (!q || !oracle_floats_equal(p->vector, q->vector) || !oracle_floats_equal(p->components, q->components) ||
        !oracle_floats_equal(p->item_gate, q->item_gate) || !span_equal(p->codes, q->codes))
      return false;
  }
  return true;
}

static inline bool oracle_is_same(const struct item_change *a, const struct item_change *b)
{
  return a->partition == b->partition && a->offset == b->offset && a->timestamp_ms == b->timestamp_ms &&
         oracle_has_same_parts(a, b);
}

struct oracle_scan {
  const struct oracle *oracle;
  size_t slot;
};

static inline err_code_t oracle_visit(void *context, struct item_change *changes, size_t n)
{
  struct oracle_scan *scan = context;
  struct region region = { 0 };

  for (size_t i = 0; i < n; i++, scan->slot++) {
    region_reset(&region);
    assert_true(scan->slot < scan->oracle->n);
    struct item_change want = oracle_change(&scan->oracle->items[scan->slot], &region);
    if (!changes[i].is_whole || changes[i].is_delete || !oracle_is_same(&want, &changes[i]))
      fail_msg("slot %zu is not what the oracle has there, id %u", scan->slot, scan->oracle->items[scan->slot].id);
    for (size_t j = 0; j < changes[i].n_parts; j++)
      assert_int_equal((uintptr_t)changes[i].parts[j].vector.v % sizeof(float), 0);
  }
  region_fini(&region);
  return ERR_OK;
}

/* Assert that the store has exactly the oracle's items, each in its slot. */
static inline void oracle_compare(const struct oracle *o, struct store *s)
{
  struct oracle_scan scan = { .oracle = o };
  struct store_stats stats;

  assert_ok(store_scan(s, 7, oracle_visit, &scan));
  assert_int_equal(scan.slot, o->n);
  store_stats(s, &stats);
  assert_int_equal(stats.n_items, o->n);
}

/* ---- The model of an engine that knows only the effects ---- */

static inline void oracle_read_served(const struct oracle_served *served, struct region *region,
                                      struct item_change *out)
{
  assert_ok(record_decode(span_of(served->record, served->n), region, out));
}

static inline struct oracle_served *oracle_find_served(const struct oracle *o, struct span key)
{
  for (size_t i = 0; i < o->n_served; i++) {
    struct record_head head;
    assert_ok(record_read_head(span_of(o->served[i].record, o->served[i].n), &head));
    if (span_equal(head.key, key))
      return &o->served[i];
  }
  return NULL;
}

static inline void oracle_write_served(struct oracle_served *served, const struct item_change *item,
                                       struct region *region)
{
  struct span record;

  assert_ok(record_encode(item, 0, region, &record));
  free(served->record);
  served->record = malloc(record.n);
  assert_non_null(served->record);
  memcpy(served->record, record.p, record.n);
  served->n = record.n;
}

/* Apply an effect. A put replaces the parts that it names; a whole item replaces all parts. */
static inline void oracle_serve(struct oracle *o, const struct item_change *effect, struct region *region)
{
  struct oracle_served *served = oracle_find_served(o, effect->key);
  struct item_change before = { 0 };
  struct item_change after = *effect;

  if (effect->is_delete) {
    assert_non_null(served); /* the engine has every item that is deleted */
    free(served->record);
    *served = o->served[--o->n_served];
    return;
  }
  if (!served) {
    assert_ok(mem_grow(o->n_served + 1, sizeof *o->served, &o->served_capacity, &o->served));
    served = &o->served[o->n_served++];
    *served = (struct oracle_served){ 0 };
  } else if (!effect->is_whole) {
    oracle_read_served(served, region, &before);
  }
  assert_ok(region_array(region, before.n_parts + effect->n_parts, sizeof *after.parts, &after.parts));
  after.n_parts = 0;
  for (size_t i = 0; i < before.n_parts; i++)
    if (!oracle_find_part(effect, before.parts[i].space))
      after.parts[after.n_parts++] = before.parts[i];
  for (size_t i = 0; i < effect->n_parts; i++)
    after.parts[after.n_parts++] = effect->parts[i];
  oracle_write_served(served, &after, region);
}

/* Assert that the engine's model has the items of the oracle. */
static inline void oracle_compare_served(const struct oracle *o)
{
  struct region region = { 0 };

  assert_int_equal(o->n_served, o->n);
  for (size_t i = 0; i < o->n; i++) {
    struct item_change got;
    region_reset(&region);
    struct item_change want = oracle_change(&o->items[i], &region);
    const struct oracle_served *served = oracle_find_served(o, want.key);
    assert_non_null(served);
    oracle_read_served(served, &region, &got);
    assert_true(oracle_has_same_parts(&want, &got));
  }
  region_fini(&region);
}

/* Apply a batch to both, and assert that they report the same effect of each change. */
static inline void oracle_apply_both(struct oracle *o, struct store *s, const struct oracle_item *items, size_t n,
                                     const struct store_position *positions, size_t n_positions)
{
  struct region region = { 0 };
  struct item_change *changes;
  struct store_effects effects;
  size_t n_applied = 0;

  assert_ok(region_array(&region, n, sizeof *changes, &changes));
  for (size_t i = 0; i < n; i++)
    changes[i] = oracle_change(&items[i], &region);
  assert_ok(store_apply(s, changes, n, positions, n_positions, &effects));
  for (size_t i = 0; i < n; i++) {
    enum store_effect want = oracle_apply(o, &items[i]);
    assert_int_equal(effects.kinds[i], want);
    n_applied += want == STORE_APPLIED;
  }
  assert_int_equal(effects.n_changes, n_applied);
  assert_int_equal(effects.n_refused, 0);
  for (size_t i = 0; i < effects.n_changes; i++)
    oracle_serve(o, &effects.changes[i], &region);
  region_fini(&region);
}

#endif
