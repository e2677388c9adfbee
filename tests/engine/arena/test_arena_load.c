/* SPDX-License-Identifier: Apache-2.0 */
/* A catalogue that several threads have loaded at once answers like one that was put item by item: in both arenas, and
 * after further changes too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "tests/support/two_spaces.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 2700, DIM = 19, SPACES = 3, CHURN = 400 };

struct item {
  bool has_part[SPACES];
  uint8_t codes[TWO_SPLITS];
  float mol[TWO_MOL_DIM];
  float vector[DIM];
};

struct world {
  struct dice dice;
  struct two_spaces two;
  char path[PATH_MAX];
  struct engine_space spaces[SPACES];
  struct engine_config config;
  struct item items[ITEMS];
};

static uint64_t seed;

static void draw_item(struct dice *dice, struct item *item)
{
  for (size_t s = 0; s < SPACES; s++)
    item->has_part[s] = dice_below(dice, 4) > 0;
  for (size_t m = 0; m < TWO_SPLITS; m++)
    item->codes[m] = (uint8_t)dice_below(dice, TWO_SUBITEMS);
  dice_fill(dice, item->mol, TWO_MOL_DIM, 1.0f);
  dice_fill(dice, item->vector, DIM, 1.0f);
}

static struct world *open_world(uint64_t salt)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed + salt;
  two_spaces_init(&w->two, &w->dice);
  snprintf(w->path, sizeof w->path, "%s/dot.safetensors", w->two.dir.path);
  vector_file_write_plain(w->path, "dot", DIM);
  w->spaces[0] = w->two.spaces[0];
  w->spaces[1] = w->two.spaces[1];
  w->spaces[2] = (struct engine_space){ .name = "dot", .model_path = w->path };
  w->config = w->two.config;
  w->config.spaces = w->spaces;
  w->config.n_spaces = SPACES;
  w->config.max_items = ITEMS;
  w->config.max_k = 2 * ITEMS;
  for (size_t i = 0; i < ITEMS; i++)
    draw_item(&w->dice, &w->items[i]);
  return w;
}

static void close_world(struct world *w)
{
  two_spaces_fini(&w->two);
  free(w);
}

static struct span key_of(size_t i, char text[32])
{
  return span_of(text, (size_t)sprintf(text, "%04zu%.*s", i * 37 % 10000, (int)(i % 11), "keykeykeyke"));
}

static struct item_change change_of(const struct item *item, size_t i, struct part parts[SPACES], char text[32])
{
  struct item_change change = { .key = key_of(i, text), .is_whole = true, .parts = parts };

  if (item->has_part[0])
    parts[change.n_parts++] = (struct part){ .space = span_of_str("pq"), .codes = span_of(item->codes, TWO_SPLITS) };
  if (item->has_part[1])
    parts[change.n_parts++] = (struct part){ .space = span_of_str("mol"), .vector = { item->mol, TWO_MOL_DIM } };
  if (item->has_part[2])
    parts[change.n_parts++] = (struct part){ .space = span_of_str("dot"), .vector = { item->vector, DIM } };
  return change;
}

static struct engine *put_one_by_one(const struct world *w)
{
  struct engine *e;
  struct part parts[SPACES];
  char text[32];

  assert_ok(engine_open(&w->config, &e));
  for (size_t i = 0; i < ITEMS; i++) {
    struct item_change change = change_of(&w->items[i], i, parts, text);
    fixture_apply(e, &change, 1);
  }
  return e;
}

struct feeding {
  const struct world *world;
  struct engine_loading *loading;
  size_t n_items;
  size_t n_threads;
  _Atomic size_t next;
};

/* Give one block of slots, in two pieces. */
static err_t give_block(struct feeding *f, struct region *region, size_t first)
{
  size_t n = f->n_items - first < LOAD_BLOCK_SLOTS ? f->n_items - first : LOAD_BLOCK_SLOTS;
  struct item_change *changes;
  struct part(*parts)[SPACES];
  char(*texts)[32];

  region_reset(region);
  TRY(region_array(region, n, sizeof *changes, &changes));
  TRY(region_array(region, n, sizeof *parts, &parts));
  TRY(region_array(region, n, sizeof *texts, &texts));
  for (size_t i = 0; i < n; i++)
    changes[i] = change_of(&f->world->items[first + i], first + i, parts[i], texts[i]);
  TRY(engine_loading_put(f->loading, region, first, changes, n / 3));
  return engine_loading_put(f->loading, region, first + n / 3, changes + n / 3, n - n / 3);
}

static err_code_t give_blocks(void *context)
{
  AUTO(region_fini) struct region region = { 0 };
  struct feeding *f = context;
  size_t first;

  while ((first = atomic_fetch_add(&f->next, LOAD_BLOCK_SLOTS)) < f->n_items)
    TRY(give_block(f, &region, first));
  return ERR_OK;
}

static err_code_t feed(void *context, struct engine_loading *loading)
{
  struct feeding *f = context;

  f->loading = loading;
  return parallel_run(f->n_threads, give_blocks, f);
}

static void replace(const struct world *w, struct engine *e, size_t n_items, size_t n_threads)
{
  struct feeding f = { .world = w, .n_items = n_items, .n_threads = n_threads };

  assert_ok(engine_replace(e, feed, &f, n_threads, &(struct position){ 0, 77 }, 1));
}

static void compare_query(struct world *w, struct engine *a, struct engine *b, const char *space, const char *method,
                          size_t dim)
{
  float vector[64];
  struct searcher *s[2];
  struct answer answers[2];
  struct query query = { .space = span_of_str(space), .method = span_of_str(method), .vector = { vector, dim } };

  query.k = (uint32_t)(1 + dice_below(&w->dice, 60));
  dice_fill(&w->dice, vector, dim, 1.0f);
  assert_ok(searcher_open(a, &s[0]));
  assert_ok(searcher_open(b, &s[1]));
  fixture_search(a, s[0], &query, 1, &answers[0]);
  fixture_search(b, s[1], &query, 1, &answers[1]);
  fixture_assert_same_hits(&answers[0], &answers[1]);
  assert_memory_equal(&answers[0].receipt, &answers[1].receipt, sizeof answers[0].receipt);
  assert_int_equal(answers[0].counts.items, answers[1].counts.items);
  searcher_close(&s[0]);
  searcher_close(&s[1]);
}

/* Compare both arenas. A change without effect brings the other one to the front. */
static void compare(struct world *w, struct engine *a, struct engine *b)
{
  for (int arena = 0; arena < 2; arena++) {
    for (int i = 0; i < 3; i++) {
      compare_query(w, a, b, "pq", "exact", TWO_SPLITS * TWO_SPLIT_DIM);
      compare_query(w, a, b, "pq", "pqtopk", TWO_SPLITS * TWO_SPLIT_DIM);
      compare_query(w, a, b, "pq", "prune(2)", TWO_SPLITS * TWO_SPLIT_DIM);
      compare_query(w, a, b, "mol", "exact", TWO_QUERY_DIM);
      compare_query(w, a, b, "mol", "average(25)", TWO_QUERY_DIM);
      compare_query(w, a, b, "mol", "combined(20,30)", TWO_QUERY_DIM);
      compare_query(w, a, b, "dot", "exact", DIM);
    }
    assert_ok(engine_apply(a, NULL, 0, NULL, 0));
    assert_ok(engine_apply(b, NULL, 0, NULL, 0));
  }
}

/* Change both engines in the same way. */
static void churn(struct world *w, struct engine *a, struct engine *b)
{
  struct part parts[SPACES];
  struct item item;
  char text[32];

  for (int i = 0; i < CHURN; i++) {
    size_t at = dice_below(&w->dice, ITEMS);
    draw_item(&w->dice, &item);
    struct item_change change = change_of(&item, at, parts, text);
    change.is_whole = dice_below(&w->dice, 2);
    change.is_delete = dice_below(&w->dice, 3) == 0;
    change.n_parts = change.is_delete ? 0 : change.n_parts;
    fixture_apply(a, &change, 1);
    fixture_apply(b, &change, 1);
  }
}

static void loaded_catalogue_answers_like_one_that_was_put_item_by_item(void **state)
{
  (void)state;
  for (size_t n_threads = 1; n_threads <= 3; n_threads++) {
    struct world *w = open_world(n_threads);
    struct engine *one_by_one = put_one_by_one(w), *loaded;
    struct engine_epoch epoch;
    struct position position;
    assert_ok(engine_open(&w->config, &loaded));
    replace(w, loaded, ITEMS, n_threads);
    engine_epoch_get(loaded, &epoch, &position, 1);
    assert_int_equal(epoch.n_items, ITEMS);
    assert_int_equal(position.next, 77);
    compare(w, loaded, one_by_one);
    churn(w, loaded, one_by_one);
    compare(w, loaded, one_by_one);
    engine_close(&loaded);
    engine_close(&one_by_one);
    close_world(w);
  }
}

/* A catalogue can be replaced by a smaller one, by nothing, and by a larger one. */
static void catalogue_can_be_replaced_again(void **state)
{
  static const size_t sizes[] = { ITEMS, 5, 0, LOAD_BLOCK_SLOTS, ITEMS };
  struct world *w = open_world(9);
  struct engine *one_by_one = put_one_by_one(w), *loaded;
  struct engine_epoch epoch;

  (void)state;
  assert_ok(engine_open(&w->config, &loaded));
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    replace(w, loaded, sizes[i], 2);
    engine_epoch_get(loaded, &epoch, NULL, 0);
    assert_int_equal(epoch.n_items, sizes[i]);
    if (sizes[i] == ITEMS)
      compare(w, loaded, one_by_one);
  }
  engine_close(&loaded);
  engine_close(&one_by_one);
  close_world(w);
}

static void count_note(void *count)
{
  atomic_fetch_add((_Atomic size_t *)count, 1);
}

/* Replace the catalogue of an engine with these spaces, and return how often it notes its progress. */
static size_t count_notes(const struct world *w, const struct engine_space *spaces, size_t n_spaces)
{
  struct engine_config config = w->config;
  _Atomic size_t n_notes = 0;
  struct engine *e;

  config.spaces = spaces;
  config.n_spaces = n_spaces;
  assert_ok(engine_open(&config, &e));
  progress_listener_set((struct progress_listener){ count_note, &n_notes });
  replace(w, e, ITEMS, 2);
  progress_listener_set((struct progress_listener){ 0 });
  engine_close(&e);
  return n_notes;
}

/* Copying to the second arena notes each block. What comes on top is the building of cells before the publication. */
static void progress_is_noted_after_the_last_item_was_given(void **state)
{
  struct world *w = open_world(11);
  size_t n_blocks = (ITEMS + LOAD_BLOCK_SLOTS - 1) / LOAD_BLOCK_SLOTS;

  (void)state;
  assert_int_equal(count_notes(w, &w->spaces[2], 1), n_blocks); /* dot products have no cells */
  assert_true(count_notes(w, w->spaces, 2) > n_blocks);
  close_world(w);
}

static void too_many_items_are_an_error(void **state)
{
  struct world *w = open_world(10);
  struct feeding f = { .world = w, .n_items = ITEMS, .n_threads = 2 };
  struct engine *e;

  (void)state;
  w->config.max_items = ITEMS - 1;
  assert_ok(engine_open(&w->config, &e));
  assert_int_equal(engine_replace(e, feed, &f, 2, NULL, 0), ERR_FULL);
  engine_close(&e);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(loaded_catalogue_answers_like_one_that_was_put_item_by_item),
    cmocka_unit_test(catalogue_can_be_replaced_again),
    cmocka_unit_test(progress_is_noted_after_the_last_item_was_given),
    cmocka_unit_test(too_many_items_are_an_error),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
