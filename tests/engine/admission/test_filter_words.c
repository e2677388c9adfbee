/* SPDX-License-Identifier: Apache-2.0 */
/* Words of filters that are brought up to date are those of filters that are evaluated anew, to the bit: after random
 * updates, deletes, parts that come and go, items that expire, and a catalogue that is replaced, in both arenas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/admission/admission.h"
#include "engine/admission/filter_words.h"
#include "engine/engine_state.h"
#include "tests/support/attribute_model.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_version.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 6000, SPACES = 2, WORDS = (ITEMS + 63) / 64, FILTERS = 40, KEY_BYTES = 16, MAX_BATCH = 200 };

static const char *const spaces[SPACES] = { "a", "b" };

/* A filter, and its words in a version. */
struct kept {
  const struct filter_node *filter;
  size_t space;
  uint64_t version;
  struct filter_words words;
  uint64_t v[WORDS];
};

struct world {
  struct dice dice;
  struct temp_dir dir;
  struct attribute_model model;
  struct engine *engine;
  int64_t now_ms;
  size_t n_known; /* keys that may be in the catalogue */
  struct region filters, scratch;
  struct kept kept[FILTERS];
  size_t n_patches;
};

static uint64_t seed;

static int64_t tell_time(void *context)
{
  return ((const struct world *)context)->now_ms;
}

/* expires: the attribute that ends the life of items; NULL: they do not expire */
static struct world *open_world(uint64_t salt, const char *expires)
{
  struct world *w = calloc(1, sizeof *w);
  char path[sizeof w->dir.path + 32];
  struct engine_space both[SPACES];
  struct engine_config config = { .spaces = both,
                                  .n_spaces = SPACES,
                                  .max_items = ITEMS,
                                  .max_k = 10,
                                  .max_batch = 1,
                                  .isa = isa_detect(),
                                  .attributes = model_attributes(&w->model),
                                  .lifetimes = { .expires = expires, .clock = { tell_time, w } } };

  w->dice.state = seed + salt;
  w->now_ms = 1790000000000;
  w->n_known = ITEMS;
  temp_dir_init(&w->dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", w->dir.path);
  vector_file_write_plain(path, "dot", 1);
  for (size_t i = 0; i < SPACES; i++)
    both[i] = (struct engine_space){ .name = spaces[i], .model_path = path };
  assert_ok(engine_open(&config, &w->engine));
  return w;
}

static void close_world(struct world *w)
{
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  region_fini(&w->filters);
  region_fini(&w->scratch);
  free(w);
}

/* Changes -------------------- */

struct batch {
  struct item_change changes[MAX_BATCH];
  struct attribute_value attributes[MAX_BATCH][MODEL_ATTRIBUTES];
  struct value elements[MAX_BATCH][MODEL_SET_MAX];
  struct part parts[MAX_BATCH];
  char keys[MAX_BATCH][KEY_BYTES];
};

static void draw_change(struct world *w, struct batch *b, size_t i, size_t percent_deleted)
{
  static const float one = 1.0f;
  struct item_change *change = &b->changes[i];

  *change = (struct item_change){ .attributes = b->attributes[i], .parts = &b->parts[i] };
  change->key = span_of(b->keys[i], (size_t)snprintf(b->keys[i], KEY_BYTES, "%zu", dice_below(&w->dice, w->n_known)));
  change->is_delete = dice_below(&w->dice, 100) < percent_deleted;
  if (change->is_delete)
    return;
  change->is_whole = dice_below(&w->dice, 10) == 0;
  change->n_parts = dice_below(&w->dice, 2);
  b->parts[i] = (struct part){ .space = span_of_str(spaces[dice_below(&w->dice, SPACES)]), .vector = { &one, 1 } };
  for (size_t j = 0; j < MODEL_ATTRIBUTES; j++) {
    struct attribute_value *value = &b->attributes[i][change->n_attributes];
    if (dice_below(&w->dice, 4))
      continue;
    change->n_attributes++;
    *value = (struct attribute_value){ w->model.attributes[j].name, { .kind = VALUE_NULL } };
    if (dice_below(&w->dice, 4))
      model_draw_value(&w->model, &w->dice, j, b->elements[i], &value->value);
  }
}

static void churn(struct world *w, size_t n_batches, size_t most, size_t percent_deleted)
{
  static struct batch b;

  for (size_t i = 0; i < n_batches; i++) {
    size_t n = dice_below(&w->dice, most + 1);
    for (size_t j = 0; j < n; j++)
      draw_change(w, &b, j, percent_deleted);
    w->now_ms += (int64_t)dice_below(&w->dice, 2);
    fixture_apply(w->engine, b.changes, n);
  }
}

/* Checks -------------------- */

/* Evaluate the filters in the newest version. Words that no slot has are garbage. */
static void keep_filters(struct world *w)
{
  const struct arena *arena = &w->engine->pair->arenas[dice_below(&w->dice, 2)];

  region_reset(&w->filters);
  for (size_t i = 0; i < FILTERS; i++) {
    struct kept *kept = &w->kept[i];
    kept->filter = model_draw_filter(&w->model, &w->dice, &w->filters, 3);
    kept->space = dice_below(&w->dice, SPACES);
    kept->version = filter_version(arena, kept->space, kept->filter);
    kept->words.words = kept->v;
    memset(kept->v, 0xa5, sizeof kept->v);
    assert_ok(
        filter_words_evaluate(&(struct filter_scope){ arena, kept->space, kept->filter }, &w->scratch, &kept->words));
  }
}

static void assert_same_words(const struct filter_words *words, const struct filter_words *wanted)
{
  assert_int_equal(words->n_words, wanted->n_words);
  assert_int_equal(words->n, wanted->n);
  assert_memory_equal(words->words, wanted->words, wanted->n_words * sizeof *wanted->words);
}

/* Bring a filter up to date, if the changes since its version are known. */
static void check_filter(struct world *w, const struct arena *arena, struct kept *kept)
{
  const struct filter_scope scope = { arena, kept->space, kept->filter };
  uint64_t anew[WORDS];
  struct filter_words wanted = { .words = anew };
  struct filter_sight sight;

  region_reset(&w->scratch);
  filter_sight_look(arena, kept->space, kept->filter, &sight);
  assert_ok(filter_words_evaluate(&scope, &w->scratch, &wanted));
  if (kept->version < sight.known_since) {
    assert_false(filter_words_can_patch(&scope, &sight, kept->version));
    kept->words = (struct filter_words){ kept->v, wanted.n_words, wanted.n };
    memcpy(kept->v, anew, wanted.n_words * sizeof *anew);
  } else {
    assert_ok(filter_words_patch(&scope, &sight, kept->version, &w->scratch, &kept->words));
    w->n_patches++;
  }
  kept->version = sight.version;
  assert_same_words(&kept->words, &wanted);
}

static void check_filters(struct world *w)
{
  for (size_t i = 0; i < FILTERS; i++)
    check_filter(w, &w->engine->pair->arenas[dice_below(&w->dice, 2)], &w->kept[i]);
}

/* Tests -------------------- */

static void compare(struct world *w)
{
  churn(w, 60, MAX_BATCH, 0);
  for (int round = 0; round < 40; round++) {
    keep_filters(w);
    for (int step = 0; step < 5; step++) {
      churn(w, dice_below(&w->dice, 4), dice_below(&w->dice, 10) ? 20 : MAX_BATCH, round % 4 == 3 ? 90 : 10);
      check_filters(w);
    }
  }
  assert_true(w->n_patches > 40 * 5 * FILTERS / 2);
  close_world(w);
}

static void patched_words_are_those_of_filters_evaluated_anew(void **state)
{
  (void)state;
  compare(open_world(1, NULL));
}

static void patched_words_follow_the_lives_of_items(void **state)
{
  (void)state;
  compare(open_world(5, "g"));
}

/* Words come and go with the slots, while filters of some words are kept. */
static void a_catalogue_that_grows_and_shrinks_keeps_its_words_right(void **state)
{
  struct world *w = open_world(2, NULL);

  (void)state;
  w->n_known = 200;
  keep_filters(w);
  for (int round = 0; round < 200; round++) {
    churn(w, 1, 60, round / 5 % 2 ? 95 : 5);
    check_filters(w);
  }
  assert_true(w->n_patches > 0);
  close_world(w);
}

static err_code_t feed_some(void *context, struct engine_loading *loading)
{
  struct world *w = context;
  struct batch *b = calloc(1, sizeof *b);

  for (size_t i = 0; i < MAX_BATCH; i++) {
    draw_change(w, b, i, 0);
    b->changes[i].key = span_of(b->keys[i], (size_t)snprintf(b->keys[i], KEY_BYTES, "%zu", i));
  }
  err_code_t err = engine_loading_put(loading, &w->scratch, 0, b->changes, MAX_BATCH);
  free(b);
  return err;
}

static void words_of_a_former_catalogue_are_not_patched(void **state)
{
  struct world *w = open_world(3, "g");

  (void)state;
  churn(w, 20, MAX_BATCH, 0);
  keep_filters(w);
  assert_ok(engine_replace(w->engine, feed_some, w, 1, NULL, 0));
  check_filters(w);
  assert_int_equal(w->n_patches, 0);
  churn(w, 5, 10, 10);
  check_filters(w);
  assert_int_equal(w->n_patches, FILTERS);
  close_world(w);
}

/* Apply one change to each of `n` items: another number. */
static void change_numbers(struct world *w, size_t n, double number)
{
  static struct batch b;

  for (size_t i = 0; i < n; i++) {
    b.changes[i] = (struct item_change){ .attributes = b.attributes[i], .n_attributes = 1 };
    b.changes[i].key = span_of(b.keys[i], (size_t)snprintf(b.keys[i], KEY_BYTES, "%zu", 64 * i));
    b.attributes[i][0] = (struct attribute_value){ span_of_str("e"), { .kind = VALUE_NUMBER, .number = number } };
  }
  fixture_apply(w->engine, b.changes, n);
}

static void many_changes_are_evaluated_and_few_are_patched(void **state)
{
  struct world *w = open_world(4, NULL);
  const struct filter_node filter = { .kind = FILTER_NUMBERS, .attribute = 4, .numbers = { 0.5, 9 } };
  const struct arena *arena = &w->engine->pair->arenas[0];
  const struct filter_scope scope = { arena, 0, &filter };
  struct filter_sight sight;

  (void)state;
  for (size_t i = 0; i < ITEMS; i++) {
    char key[KEY_BYTES];
    struct item_change item = { .key = span_of(key, (size_t)snprintf(key, KEY_BYTES, "%zu", i)) };
    fixture_apply(w->engine, &item, 1);
  }
  uint64_t version = filter_version(arena, 0, &filter);
  change_numbers(w, 5, 1);
  filter_sight_look(arena, 0, &filter, &sight);
  assert_int_equal(filter_sight_count(&sight, version), 5);
  assert_true(filter_words_can_patch(&scope, &sight, version));
  change_numbers(w, WORDS, 2);
  filter_sight_look(arena, 0, &filter, &sight);
  assert_false(filter_words_can_patch(&scope, &sight, version));
  assert_true(filter_words_can_patch(&scope, &sight, sight.version));
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(patched_words_are_those_of_filters_evaluated_anew),
    cmocka_unit_test(patched_words_follow_the_lives_of_items),
    cmocka_unit_test(a_catalogue_that_grows_and_shrinks_keeps_its_words_right),
    cmocka_unit_test(words_of_a_former_catalogue_are_not_patched),
    cmocka_unit_test(many_changes_are_evaluated_and_few_are_patched),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
