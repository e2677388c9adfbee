/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle of the store's tests: the simplest model of a store. It has an array of items in slot order, and the state
 * of each key in each partition. Beside it is a model of an engine that applies only the effects that the store
 * reports.
 *
 * The bytes of a part are computed from a number, its seed, so the oracle keeps only seeds. Seed 0: no such part. The
 * same goes for the values of attributes.
 */
#ifndef TESTS_SUPPORT_STORE_ORACLE_H
#define TESTS_SUPPORT_STORE_ORACLE_H

#include "base/item.h"
#include "base/mem.h"
#include "base/region.h"
#include "store/record/record.h"
#include "store/store_private.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"
#include "tests/support/store_visit.h"

enum { ORACLE_SPACES = 4, ORACLE_ATTRIBUTES = 6 };

/* The seed of an attribute that a change removes. */
enum { ORACLE_NULL = 1 };

/* An attribute of each type. */
static const struct attribute oracle_attribute_list[ORACLE_ATTRIBUTES] = {
  { { (const uint8_t *)"available", 9 }, ATTRIBUTE_BOOL }, { { (const uint8_t *)"country", 7 }, ATTRIBUTE_KEYWORD },
  { { (const uint8_t *)"tags", 4 }, ATTRIBUTE_KEYWORDS },  { { (const uint8_t *)"year", 4 }, ATTRIBUTE_INTEGER },
  { { (const uint8_t *)"price", 5 }, ATTRIBUTE_NUMBER },   { { (const uint8_t *)"expires", 7 }, ATTRIBUTE_TIME },
};

static const struct attributes oracle_attributes = { oracle_attribute_list, ORACLE_ATTRIBUTES };

/* Ids for the records of the engine's model. */
static const struct attribute_ids oracle_ids = {
  { oracle_attribute_list, ORACLE_ATTRIBUTES }, { 300, 2, 77, 4, 5, 65535 }, 65536
};


/* A change, an item, or the state of a key in a partition. */
struct oracle_item {
  uint32_t id; /* number of the key */
  bool is_delete;
  bool is_whole;
  uint64_t seeds[ORACLE_SPACES];
  uint64_t attributes[ORACLE_ATTRIBUTES]; /* seeds, or ORACLE_NULL in a change */
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms; /* 0: computed from offset and partition */
  uint64_t log_number;
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
  uint64_t log_number; /* it starts at 0, only changes matter */
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

/* Make a set of texts in its kept form. */
static inline struct value oracle_texts(struct dice *dice, struct region *region)
{
  size_t n = dice_below(dice, 5);
  struct value *texts;

  assert_ok(region_array(region, n, sizeof *texts, &texts));
  for (size_t i = 0; i < n; i++) {
    uint8_t text[2] = { (uint8_t)('a' + i), (uint8_t)('a' + dice_below(dice, 26)) };
    texts[i].kind = VALUE_TEXT;
    assert_ok(region_copy(region, span_of(text, dice_below(dice, 3) ? 2 : 1), &texts[i].text));
  }
  return (struct value){ .kind = VALUE_LIST, .list = { texts, n } };
}

/* Make the value of an attribute from a seed. */
static inline struct value oracle_value(enum attribute_type type, uint64_t seed, struct region *region)
{
  struct dice dice = { seed };

  if (seed == ORACLE_NULL)
    return (struct value){ .kind = VALUE_NULL };
  switch (type) {
  case ATTRIBUTE_BOOL:
    return (struct value){ .kind = VALUE_BOOL, .is_true = dice_below(&dice, 2) };
  case ATTRIBUTE_KEYWORD:
    return (struct value){ .kind = VALUE_TEXT, .text = oracle_bytes(&dice, dice_below(&dice, 257), region) };
  case ATTRIBUTE_KEYWORDS:
    return oracle_texts(&dice, region);
  case ATTRIBUTE_NUMBER:
    return (struct value){ .kind = VALUE_NUMBER, .number = (double)(int64_t)dice_u64(&dice) / 7 };
  default:
    return (struct value){ .kind = VALUE_INTEGER, .integer = (int64_t)(dice_u64(&dice) >> 1) };
  }
}

/* Draw attributes for a change: a third of them named, some of these removed. */
static inline void oracle_draw_attributes(struct dice *dice, struct oracle_item *change)
{
  for (size_t i = 0; i < ORACLE_ATTRIBUTES; i++)
    change->attributes[i] = dice_below(dice, 3) ? 0 : dice_below(dice, 3) ? dice_u64(dice) | 2 : ORACLE_NULL;
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
  struct attribute_value *attributes;
  size_t n_attributes = 0;
  assert_ok(region_array(region, ORACLE_ATTRIBUTES, sizeof *attributes, &attributes));
  for (size_t i = 0; i < ORACLE_ATTRIBUTES; i++)
    if (item->attributes[i] && !item->is_delete)
      attributes[n_attributes++] = (struct attribute_value){
        oracle_attribute_list[i].name, oracle_value(oracle_attribute_list[i].type, item->attributes[i], region)
      };
  return (struct item_change){
    .key = oracle_key(item->id, region),
    .is_delete = item->is_delete,
    .is_whole = item->is_whole,
    .parts = parts,
    .n_parts = n,
    .attributes = attributes,
    .n_attributes = n_attributes,
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

/* Find the state of a key in a partition, of the current log. */
static inline struct oracle_item *oracle_state(const struct oracle *o, uint32_t id, int32_t partition)
{
  for (size_t i = 0; i < o->n_states; i++)
    if (o->states[i].id == id && o->states[i].partition == partition && o->states[i].log_number == o->log_number)
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
  for (size_t i = 0; i < ORACLE_ATTRIBUTES; i++)
    if (change->attributes[i] || is_fresh)
      state->attributes[i] = change->is_delete || change->attributes[i] == ORACLE_NULL ? 0 : change->attributes[i];
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
    if (s->id != id || s->log_number != o->log_number)
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
      item->log_number == winner->log_number)
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
    if (item && item->log_number < o->log_number)
      *state = *item; /* the item of a forgotten log is the base of the new state */
    state->log_number = o->log_number;
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

static inline const struct value *oracle_find_value(const struct item_change *item, struct span name)
{
  for (size_t i = 0; i < item->n_attributes; i++)
    if (span_equal(item->attributes[i].name, name))
      return &item->attributes[i].value;
  return NULL;
}

static inline bool oracle_is_same_value(const struct value *a, const struct value *b)
{
  if (a->kind != b->kind)
    return false;
  if (a->kind == VALUE_BOOL)
    return a->is_true == b->is_true;
  if (a->kind == VALUE_TEXT)
    return span_equal(a->text, b->text);
  if (a->kind != VALUE_LIST) /* a number, bit for bit */
    return a->kind == VALUE_NULL || memcmp(&a->integer, &b->integer, sizeof a->integer) == 0;
  for (size_t i = 0; a->list.n == b->list.n && i < a->list.n; i++)
    if (!oracle_is_same_value(&a->list.v[i], &b->list.v[i]))
      return false;
  return a->list.n == b->list.n;
}

static inline bool oracle_has_same_attributes(const struct item_change *a, const struct item_change *b)
{
  for (size_t i = 0; a->n_attributes == b->n_attributes && i < a->n_attributes; i++) {
    const struct value *other = oracle_find_value(b, a->attributes[i].name);
    if (!other || !oracle_is_same_value(&a->attributes[i].value, other))
      return false;
  }
  return a->n_attributes == b->n_attributes;
}

/* Do two items have the same parts and attributes, bit for bit, in any order? */
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
  return oracle_has_same_attributes(a, b);
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

  assert_ok(store_visit_all(s, 7, oracle_visit, &scan));
  assert_int_equal(scan.slot, o->n);
  store_stats(s, &stats);
  assert_int_equal(stats.n_items, o->n);
}

/* ---- The model of an engine that knows only the effects ---- */

static inline void oracle_read_served(const struct oracle_served *served, struct region *region,
                                      struct item_change *out)
{
  assert_ok(record_decode(span_of(served->record, served->n), &oracle_ids, region, out));
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

  assert_ok(record_encode(item, 0, &oracle_ids, region, &record));
  free(served->record);
  served->record = malloc(record.n);
  assert_non_null(served->record);
  memcpy(served->record, record.p, record.n);
  served->n = record.n;
}

/* Merge the attributes of an effect into those that the engine has. */
static inline void oracle_serve_attributes(const struct item_change *before, const struct item_change *effect,
                                           struct region *region, struct item_change *after)
{
  assert_ok(region_array(region, before->n_attributes + effect->n_attributes, sizeof *after->attributes,
                         &after->attributes));
  after->n_attributes = 0;
  for (size_t i = 0; i < before->n_attributes; i++)
    if (!oracle_find_value(effect, before->attributes[i].name))
      after->attributes[after->n_attributes++] = before->attributes[i];
  for (size_t i = 0; i < effect->n_attributes; i++)
    if (effect->attributes[i].value.kind != VALUE_NULL)
      after->attributes[after->n_attributes++] = effect->attributes[i];
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
  oracle_serve_attributes(&before, effect, region, &after);
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

/* Open a store and set the attributes of the oracle. */
static inline err_code_t open_store_sized(const char *path, size_t map_bytes, struct store **out)
{
  TRY(store_open_sized(path, map_bytes, out));
  return store_set_attributes(*out, &oracle_attributes);
}

static inline err_code_t open_store(const char *path, struct store **out)
{
  return open_store_sized(path, STORE_MAP_BYTES, out);
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
