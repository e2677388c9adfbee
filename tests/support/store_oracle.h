/* What a store should hold: the simplest model of it, an array of items in slot order.
 *
 * The bytes of a part are a function of a number, its seed, so that the oracle keeps seeds only. Seed 0: no such part.
 */
#ifndef TESTS_SUPPORT_STORE_ORACLE_H
#define TESTS_SUPPORT_STORE_ORACLE_H

#include "base/item.h"
#include "base/mem.h"
#include "base/region.h"
#include "store/store.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"

enum { ORACLE_SPACES = 4 };

/* One change, or one item. */
struct oracle_item {
  uint32_t id; /* of the key */
  bool is_delete;
  bool is_whole;
  uint64_t seeds[ORACLE_SPACES];
  int32_t partition;
  int64_t offset;
  uint64_t generation;
};

struct oracle {
  struct oracle_item *items;
  size_t n;
  size_t capacity;
  uint64_t generation; /* starts at 0: only its changes matter */
};

static inline void oracle_fini(struct oracle *o)
{
  mem_free(&o->items);
  *o = (struct oracle){ 0 };
}

/* Keys of 1 byte, of 256 bytes, of text and of any bytes; each id its own. */
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

/* The part of a space: sizes differ from seed to seed; some records take pages of their own. */
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
    .timestamp_ms = item->offset * 7 + item->partition,
  };
}

static inline struct oracle_item *oracle_find(const struct oracle *o, uint32_t id)
{
  for (size_t i = 0; i < o->n; i++)
    if (o->items[i].id == id)
      return &o->items[i];
  return NULL;
}

/* Apply a change; tell what the store should say of it. */
static inline void oracle_apply(struct oracle *o, const struct oracle_item *change, bool *is_skipped, bool *is_whole)
{
  struct oracle_item *item = oracle_find(o, change->id);
  bool is_old = item && item->generation < o->generation;

  *is_whole = change->is_whole;
  *is_skipped = item ? !is_old && item->partition == change->partition && change->offset <= item->offset
                     : change->is_delete;
  if (*is_skipped)
    return;
  if (change->is_delete) {
    *item = o->items[--o->n];
    return;
  }
  *is_whole |= is_old;
  if (!item) {
    assert_ok(mem_grow(o->n + 1, sizeof *o->items, &o->capacity, &o->items));
    item = &o->items[o->n++];
    *item = *change;
  }
  for (size_t i = 0; i < ORACLE_SPACES; i++)
    if (change->seeds[i] || *is_whole)
      item->seeds[i] = change->seeds[i];
  item->id = change->id;
  item->partition = change->partition;
  item->offset = change->offset;
  item->generation = o->generation;
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

/* Whether two items are the same to the last bit, in whatever order their parts are. */
static inline bool oracle_is_same(const struct item_change *a, const struct item_change *b)
{
  if (!span_equal(a->key, b->key) || a->partition != b->partition || a->offset != b->offset ||
      a->timestamp_ms != b->timestamp_ms || a->n_parts != b->n_parts)
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

/* The store holds exactly the oracle's items, each in its slot. */
static inline void oracle_compare(const struct oracle *o, struct store *s)
{
  struct oracle_scan scan = { .oracle = o };
  struct store_stats stats;

  assert_ok(store_scan(s, 7, oracle_visit, &scan));
  assert_int_equal(scan.slot, o->n);
  store_stats(s, &stats);
  assert_int_equal(stats.n_items, o->n);
}

/* Apply a batch to both; what the store says of each change must be what the oracle says. */
static inline void oracle_apply_both(struct oracle *o, struct store *s, const struct oracle_item *items, size_t n,
                                     const struct store_position *positions, size_t n_positions)
{
  struct region region = { 0 };
  struct item_change *changes;
  struct store_effects effects;
  size_t at = 0;

  assert_ok(region_array(&region, n, sizeof *changes, &changes));
  for (size_t i = 0; i < n; i++)
    changes[i] = oracle_change(&items[i], &region);
  assert_ok(store_apply(s, changes, n, positions, n_positions, &effects));
  for (size_t i = 0; i < n; i++) {
    bool want_skipped;
    bool want_whole;
    oracle_apply(o, &items[i], &want_skipped, &want_whole);
    assert_int_equal(effects.kinds[i], want_skipped ? STORE_SKIPPED : STORE_APPLIED);
    if (!want_skipped)
      assert_int_equal(effects.changes[at++].is_whole, want_whole);
  }
  assert_int_equal(effects.n_changes, at);
  region_fini(&region);
}

#endif
