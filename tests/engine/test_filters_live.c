/* SPDX-License-Identifier: Apache-2.0 */
/* Searches with filters while attributes change: each answer has the attributes of exactly the epoch that it names,
 * whether its filter was evaluated before or not. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 300, MARKS = 5, EPOCHS = 500, SEARCHERS = 3, BATCH = 4, ENOUGH_SEARCHES = 200, MAX_SECONDS = 4 };

static uint64_t seed;
static struct temp_dir dir;
static struct engine *engine;
static _Atomic bool is_over;

struct worker {
  pthread_t thread;
  struct dice dice;
  _Atomic uint64_t n_searches;
  char fault[200];
};

/* The attribute of an item in an epoch. */
static size_t mark_of(size_t item, uint64_t epoch)
{
  return (item + epoch) % MARKS;
}

static size_t index_of(struct span key)
{
  return strtoul((const char *)key.p, NULL, 10);
}

static int open_engine(void **state)
{
  static const struct attribute mark = { { (const uint8_t *)"mark", 4 }, ATTRIBUTE_INTEGER };
  char path[sizeof dir.path + 32];
  struct engine_space space = { .name = "dot", .model_path = path };
  struct engine_config config = { &space,       1,          ITEMS,     ITEMS,        BATCH,
                                  isa_detect(), ENGINE_CPU, SEARCHERS, { &mark, 1 }, { 0 } };

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  assert_ok(engine_open(&config, &engine));
  return 0;
}

static int close_engine(void **state)
{
  (void)state;
  engine_close(&engine);
  temp_dir_fini(&dir);
  return 0;
}

/* Publish the next epoch: every mark changes. */
static void publish(uint64_t epoch)
{
  static struct item_change changes[ITEMS];
  static struct attribute_value marks[ITEMS];
  static char keys[ITEMS][8];
  float one = 1.0f;
  struct part part = { .space = span_of_str("dot"), .vector = { &one, 1 } };

  for (size_t i = 0; i < ITEMS; i++) {
    marks[i] = (struct attribute_value){ span_of_str("mark"),
                                         { .kind = VALUE_INTEGER, .integer = (int64_t)mark_of(i, epoch) } };
    changes[i] = (struct item_change){ .key = span_of(keys[i], (size_t)sprintf(keys[i], "%zu", i)),
                                       .parts = &part,
                                       .n_parts = epoch == 1, /* then only attributes */
                                       .attributes = &marks[i],
                                       .n_attributes = 1 };
  }
  fixture_apply(engine, changes, ITEMS);
}

static void check_answer(struct worker *w, size_t mark, const struct answer *answer)
{
  if (answer->n_hits != ITEMS / MARKS || answer->counts.admitted != ITEMS / MARKS)
    snprintf(w->fault, sizeof w->fault, "%zu hits", answer->n_hits);
  for (size_t i = 0; i < answer->n_hits; i++) {
    if (mark_of(index_of(answer->hits[i].key), answer->epoch) != mark)
      snprintf(w->fault, sizeof w->fault, "epoch %llu: item %zu is of another epoch",
               (unsigned long long)answer->epoch, index_of(answer->hits[i].key));
  }
}

static void search_once(struct worker *w, struct searcher *s, struct region *region)
{
  static const float one = 1.0f;
  char filters[BATCH][16];
  size_t marks[BATCH], space = 0;
  struct query queries[BATCH];
  const struct query *pointers[BATCH];
  struct answer answers[BATCH];
  struct method method = { 0 };

  region_reset(region);
  for (size_t q = 0; q < BATCH; q++) {
    marks[q] = dice_below(&w->dice, MARKS);
    snprintf(filters[q], sizeof filters[q], "mark = %zu", marks[q]);
    queries[q] = (struct query){ .space = span_of_str("dot"),
                                 .method = span_of_str("exact"),
                                 .k = ITEMS,
                                 .vector = { (float *)&one, 1 },
                                 .filter = span_of_str(filters[q]) };
    pointers[q] = &queries[q];
    if (engine_check_query(engine, &queries[q], &space, &method) != ERR_OK ||
        engine_check_filter(engine, &queries[q], region) != ERR_OK)
      snprintf(w->fault, sizeof w->fault, "a query was refused: %s", err_message());
  }
  if (*w->fault)
    return;
  if (searcher_search(s, space, &method, pointers, BATCH, answers) != ERR_OK)
    snprintf(w->fault, sizeof w->fault, "a search failed: %s", err_message());
  for (size_t q = 0; q < BATCH && !*w->fault; q++)
    check_answer(w, marks[q], &answers[q]);
  atomic_fetch_add(&w->n_searches, 1);
}

static void *search_on(void *context)
{
  struct worker *w = context;
  struct region region = { 0 };
  struct searcher *s;

  if (searcher_open(engine, &s) != ERR_OK)
    return NULL;
  while (!atomic_load(&is_over) && !*w->fault)
    search_once(w, s, &region);
  searcher_close(&s);
  region_fini(&region);
  return NULL;
}

static bool has_searched_enough(struct worker *workers)
{
  for (size_t i = 0; i < SEARCHERS; i++) {
    if (atomic_load(&workers[i].n_searches) < ENOUGH_SEARCHES)
      return false;
  }
  return true;
}

static void a_changed_attribute_counts_from_its_epoch_on(void **state)
{
  static struct worker workers[SEARCHERS];
  int64_t end = clock_now_ns() + MAX_SECONDS * INT64_C(1000000000);
  struct engine_filters filters;
  uint64_t epoch = 1;

  (void)state;
  publish(epoch);
  for (size_t i = 0; i < SEARCHERS; i++) {
    workers[i].dice.state = seed + i;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, search_on, &workers[i]), 0);
  }
  while (epoch < EPOCHS || (!has_searched_enough(workers) && clock_now_ns() < end))
    publish(++epoch);
  atomic_store(&is_over, true);
  for (size_t i = 0; i < SEARCHERS; i++) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    if (*workers[i].fault)
      fail_msg("%s", workers[i].fault);
  }
  engine_filters_get(engine, &filters);
  printf("%llu epochs, %llu filters evaluated, %llu known\n", (unsigned long long)epoch,
         (unsigned long long)filters.n_evaluated, (unsigned long long)filters.n_known);
  assert_true(filters.n_evaluated > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_changed_attribute_counts_from_its_epoch_on),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, open_engine, close_engine);
}
