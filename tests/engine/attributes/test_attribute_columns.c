/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute columns under random writes compared with plain items: values, counts, and random filters for every slot.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "engine/attributes/attribute_column.h"
#include "engine/attributes/attribute_selection.h"
#include "engine/load_block.h"
#include "tests/support/attribute_get.h"
#include "tests/support/attribute_model.h"
#include "tests/support/filter_matches.h"

enum { CAPACITY = 5003, WORDS = (CAPACITY + 63) / 64, MANY = 1000003 };

struct world {
  struct dice dice;
  struct attribute_model model;
  struct attributes attributes;
  const struct kernels *kernels;
  struct attribute_columns *columns;
  struct model_item *items; /* [capacity] */
  size_t n_slots;
  size_t capacity;
  struct region region;
};

static uint64_t seed;

static struct attribute_columns *open_columns(const struct world *w)
{
  struct attribute_columns *c;

  assert_ok(attribute_columns_open(&w->attributes, w->kernels, w->capacity, &c));
  return c;
}

static struct world *open_world(uint64_t salt, size_t capacity)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed + salt;
  w->capacity = capacity;
  w->attributes = model_attributes(&w->model);
  w->items = calloc(capacity, sizeof *w->items);
  assert_ok(kernels_get((enum isa)dice_below(&w->dice, (size_t)isa_detect() + 1), &w->kernels));
  w->columns = open_columns(w);
  return w;
}

static void close_world(struct world *w)
{
  attribute_columns_close(&w->columns);
  region_fini(&w->region);
  free(w->items);
  free(w);
}

/* Writing -------------------- */

static void put_one(struct world *w, size_t slot, size_t attribute, bool is_null)
{
  struct model_item *item = &w->items[slot];

  item->values[attribute] = (struct value){ .kind = VALUE_NULL };
  if (!is_null)
    model_draw_value(&w->model, &w->dice, attribute, item->elements, &item->values[attribute]);
  assert_ok(attribute_columns_put(w->columns, (uint32_t)slot, attribute, &item->values[attribute]));
}

static void put_some(struct world *w, size_t slot)
{
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    if (dice_below(&w->dice, 3))
      put_one(w, slot, i, dice_below(&w->dice, 4) == 0);
  }
}

static void append(struct world *w)
{
  if (w->n_slots < w->capacity)
    put_some(w, w->n_slots++);
}

/* Delete an item as an arena does: the last one moves into its slot. */
static void delete(struct world *w)
{
  if (w->n_slots == 0)
    return;
  size_t slot = dice_below(&w->dice, w->n_slots), last = --w->n_slots;
  attribute_columns_drop(w->columns, (uint32_t)slot);
  if (slot != last) {
    assert_ok(attribute_columns_move(w->columns, (uint32_t)last, (uint32_t)slot));
    model_copy(&w->items[last], &w->items[slot]);
  }
  w->items[last] = (struct model_item){ 0 };
}

static void trim(struct world *w)
{
  attribute_columns_trim(w->columns, w->n_slots, w->capacity);
}

/* Write many times; the catalogue grows if `growth` is above 50, else it shrinks. */
static void churn(struct world *w, size_t n, size_t growth)
{
  for (size_t i = 0; i < n; i++) {
    if (dice_below(&w->dice, 3) == 0 && w->n_slots)
      put_some(w, dice_below(&w->dice, w->n_slots));
    else if (dice_below(&w->dice, 100) < growth)
      append(w);
    else
      delete(w);
  }
}

/* Checks -------------------- */

static void assert_values(struct world *w, const struct attribute_columns *c)
{
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    uint64_t n = 0;
    for (size_t slot = 0; slot < w->n_slots; slot++) {
      struct value value = { .kind = VALUE_NULL };
      region_reset(&w->region);
      assert_ok(attribute_get(c, (uint32_t)slot, i, &w->region, &value));
      model_assert_value(&value, &w->items[slot].values[i]);
      assert_ok(attribute_columns_copy_value(c, i, (uint32_t)slot, &w->region, &value));
      model_assert_value(&value, &w->items[slot].values[i]);
      n += value.kind != VALUE_NULL;
    }
    assert_int_equal(attribute_columns_count(c, i), n);
  }
}

/* How many different texts have an attribute's items? */
static uint32_t count_texts(struct world *w, size_t attribute)
{
  bool has[MODEL_TEXTS] = { 0 };
  uint32_t n = 0;

  for (size_t slot = 0; slot < w->n_slots; slot++) {
    const struct value *value = &w->items[slot].values[attribute];
    const struct value *texts = value->kind == VALUE_LIST ? value->list.v : value;
    size_t n_texts = value->kind == VALUE_LIST ? value->list.n : value->kind == VALUE_TEXT;
    for (size_t i = 0; i < n_texts; i++) {
      size_t text = (size_t)((const char *)texts[i].text.p - w->model.texts[0]) / sizeof w->model.texts[0];
      n += !has[text];
      has[text] = true;
    }
  }
  return n;
}

static void assert_texts(struct world *w, const struct attribute_columns *c)
{
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++)
    assert_int_equal(c->v[i].texts.n_texts, count_texts(w, i));
}

static void assert_words(const struct world *w, const struct filter_node *filter, size_t first, size_t n,
                         const uint64_t *words)
{
  for (size_t slot = first * 64; slot < (first + n) * 64 && slot < w->n_slots; slot++) {
    bool found = words[slot / 64 - first] >> (slot % 64) & 1;
    if (found != filter_matches(filter, w->items[slot].values))
      fail_msg("slot %zu: the columns say %d", slot, found);
  }
}

static void assert_filter(struct world *w, const struct attribute_columns *c)
{
  size_t n_words = (w->capacity + 63) / 64, first = dice_below(&w->dice, n_words);
  size_t n = dice_below(&w->dice, n_words - first + 1);
  uint64_t *words = calloc(n_words, sizeof *words);

  region_reset(&w->region);
  const struct filter_node *filter = model_draw_filter(&w->model, &w->dice, &w->region, dice_below(&w->dice, 5));
  assert_ok(attribute_columns_select(c, filter, 0, n_words, words, &w->region));
  assert_words(w, filter, 0, n_words, words);
  assert_ok(attribute_columns_select(c, filter, first, n, words, &w->region));
  assert_words(w, filter, first, n, words);
  free(words);
}

static void assert_all(struct world *w, const struct attribute_columns *c, size_t n_filters)
{
  assert_values(w, c);
  assert_texts(w, c);
  for (size_t i = 0; i < n_filters; i++)
    assert_filter(w, c);
}

/* Tests -------------------- */

static void columns_are_like_plain_items_under_churn(void **state)
{
  struct world *w = open_world(1, CAPACITY);

  (void)state;
  for (int i = 0; i < 3; i++) {
    assert_all(w, w->columns, 20);
    churn(w, 6000, 90);
    assert_all(w, w->columns, 60);
    churn(w, 6000, 10);
    trim(w);
    assert_all(w, w->columns, 60);
  }
  while (w->n_slots)
    delete(w);
  trim(w);
  assert_all(w, w->columns, 5);
  churn(w, 2000, 80);
  assert_all(w, w->columns, 20);
  close_world(w);
}

static void copies_of_values_outlive_the_columns(void **state)
{
  struct world *w = open_world(8, CAPACITY);

  (void)state;
  churn(w, 2000, 90);
  struct value *values = calloc(w->n_slots * MODEL_ATTRIBUTES, sizeof *values);
  for (size_t i = 0; i < w->n_slots * MODEL_ATTRIBUTES; i++)
    assert_ok(attribute_columns_copy_value(w->columns, i % MODEL_ATTRIBUTES, (uint32_t)(i / MODEL_ATTRIBUTES),
                                           &w->region, &values[i]));
  attribute_columns_close(&w->columns);
  for (size_t i = 0; i < w->n_slots * MODEL_ATTRIBUTES; i++)
    model_assert_value(&values[i], &w->items[i / MODEL_ATTRIBUTES].values[i % MODEL_ATTRIBUTES]);
  free(values);
  close_world(w);
}

static void a_set_of_too_many_texts_is_refused(void **state)
{
  enum { SET = 2 };
  struct world *w = open_world(7, CAPACITY);
  struct value texts[ATTRIBUTE_SET_MAX + 1], set = { VALUE_LIST, .list = { texts, ATTRIBUTE_SET_MAX } };

  (void)state;
  for (size_t i = 0; i <= ATTRIBUTE_SET_MAX; i++)
    texts[i] = (struct value){ VALUE_TEXT, .text = span_of_str(w->model.texts[i]) };
  assert_ok(attribute_columns_put(w->columns, 0, SET, &set));
  set.list.n++;
  assert_int_equal(attribute_columns_put(w->columns, 0, SET, &set), ERR_ITEM);
  assert_int_equal(attribute_columns_put(w->columns, 1, SET, &set), ERR_ITEM);
  assert_int_equal(attribute_columns_count(w->columns, SET), 1);
  assert_int_equal(w->columns->v[SET].texts.n_texts, ATTRIBUTE_SET_MAX);
  close_world(w);
}

static void texts_that_no_item_has_are_freed(void **state)
{
  struct world *w = open_world(2, CAPACITY);

  (void)state;
  churn(w, 5000, 90);
  assert_texts(w, w->columns);
  while (w->n_slots)
    delete(w);
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++)
    assert_null(w->columns->v[i].texts.entries);
  close_world(w);
}

static void a_million_items_are_filtered(void **state)
{
  struct world *w = open_world(3, MANY);

  (void)state;
  while (w->n_slots < MANY)
    append(w);
  for (int i = 0; i < 1000; i++)
    delete(w);
  for (int i = 0; i < 6; i++)
    assert_filter(w, w->columns);
  close_world(w);
}

/* Bind a filter of `n` equal leaves, each with as many texts, and return the bytes that it takes. */
static size_t bound_bytes(struct world *w, const struct filter_node *leaf, size_t n)
{
  struct region region = { 0 };
  const struct filter_node **leaves = calloc(n, sizeof(const struct filter_node *));
  struct filter_node any = { .kind = FILTER_OR, .operands = { leaves, n } };
  const struct attribute_selection *selection;

  for (size_t i = 0; i < n; i++)
    leaves[i] = leaf;
  assert_ok(attribute_selection_bind(w->columns, &any, &region, &selection));
  size_t bytes = region.taken_bytes;
  region_fini(&region);
  free(leaves);
  return bytes;
}

/* A filter of a few kilobytes has a thousand leaves. */
static void lists_of_texts_take_memory_by_their_length(void **state)
{
  enum { LEAVES = 1000, TEXTS = 16 };
  struct world *w = open_world(6, MANY);
  struct span texts[TEXTS];
  const struct filter_node leaf = { .kind = FILTER_TEXTS, .attribute = 1, .texts = { texts, TEXTS } };

  (void)state;
  for (uint32_t i = 0; i < TEXTS; i++) {
    texts[i] = span_of_str(w->model.texts[i]);
    struct value value = { VALUE_TEXT, .text = texts[i] };
    assert_ok(attribute_columns_put(w->columns, MANY - 1 - i, leaf.attribute, &value));
  }
  assert_in_range(bound_bytes(w, &leaf, LEAVES), LEAVES, LEAVES * 512);
  close_world(w);
}

/* Loading -------------------- */

struct loading {
  struct world *world;
  struct attribute_columns *columns;
  const struct attribute_columns *from; /* NULL: from the items */
  _Atomic size_t next;
};

static err_t load_block(struct loading *l, size_t first, size_t n)
{
  if (l->from)
    return attribute_columns_copy(l->columns, l->from, first, n);
  for (size_t slot = first; slot < first + n; slot++) {
    for (size_t i = 0; i < MODEL_ATTRIBUTES; i++)
      TRY(attribute_columns_load(l->columns, (uint32_t)slot, i, &l->world->items[slot].values[i]));
  }
  return ERR_OK;
}

static err_code_t load_blocks(void *context)
{
  struct loading *l = context;
  size_t first, n_slots = l->world->n_slots;

  while ((first = atomic_fetch_add(&l->next, LOAD_BLOCK_SLOTS)) < n_slots)
    TRY(load_block(l, first, n_slots - first < LOAD_BLOCK_SLOTS ? n_slots - first : (size_t)LOAD_BLOCK_SLOTS));
  return ERR_OK;
}

static struct attribute_columns *load(struct world *w, const struct attribute_columns *from)
{
  struct loading l = { .world = w, .columns = open_columns(w), .from = from };

  assert_ok(parallel_run(4, load_blocks, &l));
  assert_ok(attribute_columns_finish(l.columns, w->n_slots));
  return l.columns;
}

static void columns_that_threads_have_loaded_are_like_those_of_puts(void **state)
{
  struct world *w = open_world(4, CAPACITY);

  (void)state;
  churn(w, 6000, 90);
  struct attribute_columns *loaded = load(w, NULL), *copied = load(w, loaded);
  attribute_columns_close(&w->columns);
  assert_all(w, loaded, 20);
  assert_all(w, copied, 20);
  w->columns = copied; /* and they can be changed */
  churn(w, 3000, 40);
  assert_all(w, copied, 20);
  attribute_columns_close(&loaded);
  close_world(w);
}

static void columns_that_are_loaded_in_part_can_be_closed(void **state)
{
  struct world *w = open_world(5, CAPACITY);

  (void)state;
  churn(w, 600, 90);
  struct attribute_columns *c = open_columns(w);
  struct loading l = { .world = w, .columns = c };
  assert_ok(load_block(&l, 0, w->n_slots / 2));
  attribute_columns_close(&c);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(columns_are_like_plain_items_under_churn),
    cmocka_unit_test(copies_of_values_outlive_the_columns),
    cmocka_unit_test(a_set_of_too_many_texts_is_refused),
    cmocka_unit_test(texts_that_no_item_has_are_freed),
    cmocka_unit_test(a_million_items_are_filtered),
    cmocka_unit_test(lists_of_texts_take_memory_by_their_length),
    cmocka_unit_test(columns_that_threads_have_loaded_are_like_those_of_puts),
    cmocka_unit_test(columns_that_are_loaded_in_part_can_be_closed),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
