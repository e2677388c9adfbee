/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes in an engine: both arenas have the values of the newest changes, after partial changes, deletes and a
 * catalogue that threads have loaded, and filters over their slots are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/parallel.h"
#include "engine/admission/admission.h"
#include "engine/engine_state.h"
#include "tests/support/attribute_get.h"
#include "tests/support/attribute_model.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_matches.h"
#include "tests/support/filter_version.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 3000, DIM = 3, KEY_BYTES = 16, MAX_BATCH = 300 };

struct world {
  struct dice dice;
  struct temp_dir dir;
  char path[PATH_MAX];
  struct attribute_model model;
  struct engine_space space;
  struct engine_config config;
  struct engine *engine;
  struct model_item items[ITEMS];
  bool is_live[ITEMS];
  struct region region;
};

static uint64_t seed;

static struct world *open_world(uint64_t salt)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed + salt;
  temp_dir_init(&w->dir);
  snprintf(w->path, sizeof w->path, "%s/dot.safetensors", w->dir.path);
  vector_file_write_plain(w->path, "dot", DIM);
  w->space = (struct engine_space){ .name = "dot", .model_path = w->path };
  w->config = (struct engine_config){ .spaces = &w->space,
                                      .n_spaces = 1,
                                      .max_items = ITEMS,
                                      .max_k = 10,
                                      .max_batch = 1,
                                      .isa = isa_detect(),
                                      .attributes = model_attributes(&w->model) };
  assert_ok(engine_open(&w->config, &w->engine));
  return w;
}

static void close_world(struct world *w)
{
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  region_fini(&w->region);
  free(w);
}

static struct span key_of(size_t item, char key[KEY_BYTES])
{
  return span_of(key, (size_t)snprintf(key, KEY_BYTES, "item %zu", item));
}

/* Changes -------------------- */

/* A batch of changes and the memory that it points to. */
struct batch {
  struct item_change changes[MAX_BATCH];
  struct attribute_value attributes[MAX_BATCH][MODEL_ATTRIBUTES + 1];
  struct model_item items[MAX_BATCH];
  char keys[MAX_BATCH][KEY_BYTES];
};

/* Set some values of a change and of the expected item. */
static void draw_values(struct world *w, struct item_change *change, struct model_item *drawn,
                        struct attribute_value *attributes, struct model_item *item)
{
  change->attributes = attributes;
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    struct attribute_value *attribute = &attributes[change->n_attributes];
    if (dice_below(&w->dice, 2))
      continue;
    change->n_attributes++;
    *attribute = (struct attribute_value){ w->model.attributes[i].name, { .kind = VALUE_NULL } };
    if (dice_below(&w->dice, 4))
      model_draw_value(&w->model, &w->dice, i, drawn->elements, &attribute->value);
    item->values[i] = attribute->value;
    if (attribute->value.kind == VALUE_LIST)
      memcpy(item->elements, drawn->elements, sizeof item->elements);
  }
  model_copy(item, item);
  attributes[change->n_attributes++] = (struct attribute_value){ span_of_str("unknown"), { .kind = VALUE_BOOL } };
}

static void draw_change(struct world *w, struct batch *b, size_t n, bool deletes)
{
  size_t i = dice_below(&w->dice, ITEMS);
  struct item_change *change = &b->changes[n];

  *change = (struct item_change){ .key = key_of(i, b->keys[n]), .is_delete = deletes };
  change->is_whole = dice_below(&w->dice, 4) == 0;
  if (deletes || change->is_whole)
    w->items[i] = (struct model_item){ 0 };
  w->is_live[i] = !deletes;
  if (!deletes)
    draw_values(w, change, &b->items[n], b->attributes[n], &w->items[i]);
}

static void churn(struct world *w, size_t n_batches, size_t deletes)
{
  static struct batch b;

  for (size_t i = 0; i < n_batches; i++) {
    size_t n = dice_below(&w->dice, MAX_BATCH + 1);
    for (size_t j = 0; j < n; j++)
      draw_change(w, &b, j, dice_below(&w->dice, 100) < deletes);
    fixture_apply(w->engine, b.changes, n);
  }
}

/* Checks -------------------- */

static void assert_items(struct world *w, const struct arena *a)
{
  char key[KEY_BYTES];

  for (size_t i = 0; i < ITEMS; i++) {
    uint32_t slot = keys_find(&a->keys, key_of(i, key));
    assert_int_equal(slot != KEYS_NONE, w->is_live[i]);
    for (size_t j = 0; w->is_live[i] && j < MODEL_ATTRIBUTES; j++) {
      struct value value = { .kind = VALUE_NULL };
      region_reset(&w->region);
      assert_ok(attribute_get(a->attributes, slot, j, &w->region, &value));
      model_assert_value(&value, &w->items[i].values[j]);
    }
  }
}

static void assert_filter(struct world *w, const struct arena *a)
{
  uint64_t words[ITEMS / 64 + 1];
  char key[KEY_BYTES];

  region_reset(&w->region);
  const struct filter_node *filter = model_draw_filter(&w->model, &w->dice, &w->region, 3);
  assert_int_equal(filter_version(&w->engine->pair->arenas[0], 0, filter),
                   filter_version(&w->engine->pair->arenas[1], 0, filter));
  assert_ok(attribute_columns_select(a->attributes, filter, 0, bits_words(a->n_slots), words, &w->region));
  for (size_t i = 0; i < ITEMS; i++) {
    if (w->is_live[i])
      assert_int_equal(bits_get(words, keys_find(&a->keys, key_of(i, key))),
                       filter_matches(filter, w->items[i].values));
  }
}

static void assert_arenas(struct world *w)
{
  for (size_t i = 0; i < 2; i++) {
    assert_items(w, &w->engine->pair->arenas[i]);
    for (int j = 0; j < 20; j++)
      assert_filter(w, &w->engine->pair->arenas[i]);
  }
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    uint64_t n = 0;
    for (size_t item = 0; item < ITEMS; item++)
      n += w->items[item].values[i].kind != VALUE_NULL;
    assert_int_equal(engine_attribute_count(w->engine, i), n);
  }
}

/* Tests -------------------- */

static void both_arenas_have_the_newest_values(void **state)
{
  struct world *w = open_world(1);

  (void)state;
  for (int i = 0; i < 3; i++) {
    churn(w, 40, 10);
    assert_arenas(w);
    churn(w, 40, 90);
    assert_arenas(w);
  }
  close_world(w);
}

struct feeding {
  struct world *world;
  struct engine_loading *loading;
  _Atomic size_t next;
};

static err_t give_block(struct feeding *f, struct region *region, size_t first)
{
  struct item_change changes[LOAD_BLOCK_SLOTS];
  char keys[LOAD_BLOCK_SLOTS][KEY_BYTES];
  size_t n = ITEMS - first < LOAD_BLOCK_SLOTS ? ITEMS - first : (size_t)LOAD_BLOCK_SLOTS;

  for (size_t i = 0; i < n; i++) {
    struct attribute_value *attributes;
    TRY(region_array(region, MODEL_ATTRIBUTES, sizeof *attributes, &attributes));
    changes[i] = (struct item_change){ .key = key_of(first + i, keys[i]), .attributes = attributes, .is_whole = true };
    for (size_t j = 0; j < MODEL_ATTRIBUTES; j++) {
      const struct value *value = &f->world->items[first + i].values[j];
      if (value->kind != VALUE_NULL)
        attributes[changes[i].n_attributes++] = (struct attribute_value){ f->world->model.attributes[j].name, *value };
    }
  }
  return engine_loading_put(f->loading, region, first, changes, n);
}

static err_code_t give_blocks(void *context)
{
  AUTO(region_fini) struct region region = { 0 };
  struct feeding *f = context;
  size_t first;

  while ((first = atomic_fetch_add(&f->next, LOAD_BLOCK_SLOTS)) < ITEMS)
    TRY(give_block(f, &region, first));
  return ERR_OK;
}

static err_code_t feed(void *context, struct engine_loading *loading)
{
  struct feeding *f = context;

  f->loading = loading;
  return parallel_run(4, give_blocks, f);
}

static void a_catalogue_that_is_replaced_has_its_values(void **state)
{
  struct world *w = open_world(2);
  struct feeding f = { .world = w };

  (void)state;
  churn(w, 20, 10);
  for (size_t i = 0; i < ITEMS; i++) {
    w->is_live[i] = true;
    w->items[i] = (struct model_item){ 0 };
    for (size_t j = 0; j < MODEL_ATTRIBUTES; j++) {
      if (dice_below(&w->dice, 3))
        model_draw_value(&w->model, &w->dice, j, w->items[i].elements, &w->items[i].values[j]);
    }
  }
  assert_ok(engine_replace(w->engine, feed, &f, 3, &(struct position){ 0, 1 }, 1));
  assert_arenas(w);
  churn(w, 40, 50);
  assert_arenas(w);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(both_arenas_have_the_newest_values),
    cmocka_unit_test(a_catalogue_that_is_replaced_has_its_values),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
