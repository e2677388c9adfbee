/* SPDX-License-Identifier: Apache-2.0 */
/* A catalogue that has become small gives its memory back, and searches return the same as if it had never been larger.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <unistd.h>

#include "tests/support/heap.h"
#include "tests/support/two_spaces.h"

enum { N = 40000, BATCH = 4000, LEFT = 1500 };

static uint64_t seed;

struct world {
  struct dice dice;
  struct two_spaces two;
  struct engine *engine;
  struct two_item items[N];
};

static struct span key_of(size_t i, char text[16])
{
  return span_of(text, (size_t)snprintf(text, 16, "item-%zu", i));
}

static struct world *open_world(void)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed;
  two_spaces_init(&w->two, &w->dice);
  w->two.config.max_items = N;
  w->two.config.max_k = N;
  assert_ok(engine_open(&w->two.config, &w->engine));
  for (size_t i = 0; i < N; i++) {
    for (size_t m = 0; m < TWO_SPLITS; m++)
      w->items[i].codes[m] = (uint8_t)dice_below(&w->dice, TWO_SUBITEMS);
    dice_fill(&w->dice, w->items[i].vector, TWO_MOL_DIM, 1.0f);
  }
  return w;
}

static void close_world(struct world *w)
{
  engine_close(&w->engine);
  two_spaces_fini(&w->two);
  free(w);
}

/* Put or delete items from..to-1. */
static void change_items(struct world *w, struct engine *engine, size_t from, size_t to, bool is_delete)
{
  static struct item_change changes[BATCH];
  static struct part parts[BATCH][2];
  static char keys[BATCH][16];

  while (from < to) {
    size_t n = 0;
    for (; n < BATCH && from < to; n++, from++) {
      changes[n] = (struct item_change){ .key = key_of(from, keys[n]), .is_delete = is_delete, .parts = parts[n] };
      if (!is_delete)
        changes[n].n_parts = two_parts(&w->items[from], from % 3 != 0, from % 5 != 0, parts[n]);
    }
    fixture_apply(engine, changes, n);
  }
}

static size_t resident_bytes(void)
{
  FILE *f = fopen("/proc/self/statm", "r");
  size_t total = 0, resident = 0;

  malloc_trim(0); /* memory that the allocator keeps does not count */
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%zu %zu", &total, &resident), 2);
  fclose(f);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void assert_searched_alike(struct world *w, struct engine *other)
{
  static const char *const cases[][2] = { { "pq", "exact" }, { "pq", "pqtopk" }, { "pq", "prune(2)" },
                                          { "mol", "exact" }, { "mol", "two_pass" } };
  struct engine *engines[2] = { w->engine, other };

  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    float vector[TWO_QUERY_DIM];
    struct searcher *s[2];
    struct answer answers[2];
    struct query query = { .space = span_of_str(cases[c][0]), .method = span_of_str(cases[c][1]), .k = 50 };
    dice_fill(&w->dice, vector, TWO_QUERY_DIM, 1.0f);
    query.vector = (struct floats){ vector, c < 3 ? TWO_SPLITS * TWO_SPLIT_DIM : TWO_QUERY_DIM };
    for (size_t i = 0; i < 2; i++) {
      assert_ok(searcher_open(engines[i], &s[i]));
      fixture_search(engines[i], s[i], &query, 1, &answers[i]);
    }
    fixture_assert_same_hits(&answers[0], &answers[1]);
    assert_true(answers[0].receipt.is_exact);
    assert_int_equal(answers[0].counts.items, answers[1].counts.items);
    searcher_close(&s[0]);
    searcher_close(&s[1]);
  }
}

static void memory_goes_back_when_everything_was_deleted(void **state)
{
  struct world *w = open_world();
  size_t before = resident_bytes();

  (void)state;
  for (int round = 0; round < 2; round++) {
    change_items(w, w->engine, 0, N, false);
    size_t top = resident_bytes();
    change_items(w, w->engine, 0, N, true);
    size_t after = resident_bytes();
    printf("resident: %zu KB, with %d items %zu KB, without them %zu KB\n", before >> 10, N, top >> 10, after >> 10);
    if (!__sanitizer_get_current_allocated_bytes) /* the shadow memory of sanitizers stays */
      assert_true(after < before + (top - before) / 3);
  }
  close_world(w);
}

/* Items are deleted in two orders: the number of slots falls to a part of its maximum, then to zero, and rises again.
 */
static void what_is_left_is_searched_as_if_the_rest_had_never_been(void **state)
{
  struct world *w = open_world();
  struct engine *other;

  (void)state;
  assert_ok(engine_open(&w->two.config, &other));
  change_items(w, other, N - LEFT, N, false);
  change_items(w, w->engine, 0, N, false);
  change_items(w, w->engine, 0, N - LEFT, true);
  assert_searched_alike(w, other);
  change_items(w, w->engine, N - LEFT, N, true);
  change_items(w, w->engine, N - LEFT, N, false);
  assert_searched_alike(w, other);
  change_items(w, w->engine, 0, N / 2, false);
  change_items(w, other, 0, N / 2, false);
  assert_searched_alike(w, other);
  engine_close(&other);
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_goes_back_when_everything_was_deleted),
    cmocka_unit_test(what_is_left_is_searched_as_if_the_rest_had_never_been),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
