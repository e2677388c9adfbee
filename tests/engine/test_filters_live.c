/* SPDX-License-Identifier: Apache-2.0 */
/* Searches with filters while attributes change, all at once or a few: each answer has the attributes of exactly the
 * epoch that it names, whether its filter was evaluated, patched, or known. */
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

enum { ITEMS = 4096, MARKS = 10, EPOCHS = 500, SEARCHERS = 3, BATCH = 4, ENOUGH_SEARCHES = 200, MAX_SECONDS = 4 };

/* How many items there are, and in how many epochs each changes once. */
struct course {
  size_t n_items, n_epochs;
};

static uint64_t seed;
static struct course course;
static struct temp_dir dir;
static struct engine *engine;
static _Atomic bool is_over;

struct worker {
  pthread_t thread;
  struct dice dice;
  _Atomic uint64_t n_searches;
  char fault[200];
};

/* The attribute of an item in an epoch. It changes when item + epoch is a multiple of the course's epochs. */
static size_t mark_of(size_t item, uint64_t epoch)
{
  return (item + (item + epoch) / course.n_epochs) % MARKS;
}

static size_t count_marks(size_t mark, uint64_t epoch)
{
  size_t n = 0;

  for (size_t i = 0; i < course.n_items; i++)
    n += mark_of(i, epoch) == mark;
  return n;
}

static size_t index_of(struct span key)
{
  return strtoul((const char *)key.p, NULL, 10);
}

static void open_engine(struct course of)
{
  static const struct attribute mark = { { (const uint8_t *)"mark", 4 }, ATTRIBUTE_INTEGER };
  char path[sizeof dir.path + 32];
  struct engine_space space = { .name = "dot", .model_path = path };
  struct engine_config config = { &space,       1,          ITEMS,     ITEMS,        BATCH,
                                  isa_detect(), ENGINE_CPU, SEARCHERS, { &mark, 1 }, { 0 } };

  course = of;
  atomic_store(&is_over, false);
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  assert_ok(engine_open(&config, &engine));
}

static void close_engine(void)
{
  engine_close(&engine);
  temp_dir_fini(&dir);
}

/* Publish the next epoch. */
static void publish(uint64_t epoch)
{
  static struct item_change changes[ITEMS];
  static struct attribute_value marks[ITEMS];
  static char keys[ITEMS][8];
  float one = 1.0f;
  struct part part = { .space = span_of_str("dot"), .vector = { &one, 1 } };
  size_t n = 0;

  for (size_t i = 0; i < course.n_items; i++) {
    if (epoch > 1 && mark_of(i, epoch) == mark_of(i, epoch - 1))
      continue;
    marks[n] = (struct attribute_value){ span_of_str("mark"),
                                         { .kind = VALUE_INTEGER, .integer = (int64_t)mark_of(i, epoch) } };
    changes[n] = (struct item_change){ .key = span_of(keys[n], (size_t)sprintf(keys[n], "%zu", i)),
                                       .parts = &part,
                                       .n_parts = epoch == 1, /* then only attributes */
                                       .attributes = &marks[n],
                                       .n_attributes = 1 };
    n++;
  }
  fixture_apply(engine, changes, n);
}

static void check_answer(struct worker *w, size_t mark, const struct answer *answer)
{
  size_t n = count_marks(mark, answer->epoch);

  if (answer->n_hits != n || answer->counts.admitted != n)
    snprintf(w->fault, sizeof w->fault, "%zu hits", answer->n_hits);
  for (size_t i = 0; i < answer->n_hits; i++) {
    if (mark_of(index_of(answer->hits[i].key), answer->epoch) != mark)
      snprintf(w->fault, sizeof w->fault, "epoch %llu: item %zu is of another epoch", (unsigned long long)answer->epoch,
               index_of(answer->hits[i].key));
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

/* Search while epochs are published. */
static struct engine_filters run(struct course of)
{
  struct worker workers[SEARCHERS] = { 0 };
  int64_t end = clock_now_ns() + MAX_SECONDS * INT64_C(1000000000);
  struct engine_filters filters;
  uint64_t epoch = 1;

  open_engine(of);
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
  printf("%llu epochs, filters: %llu evaluated, %llu patched, %llu known\n", (unsigned long long)epoch,
         (unsigned long long)filters.n_evaluated, (unsigned long long)filters.n_patched,
         (unsigned long long)filters.n_known);
  close_engine();
  return filters;
}

static void attributes_that_all_change_count_from_their_epoch_on(void **state)
{
  (void)state;
  struct engine_filters filters = run((struct course){ 300, 1 });
  assert_true(filters.n_evaluated > 0);
}

static void attributes_of_which_few_change_count_from_their_epoch_on(void **state)
{
  (void)state;
  struct engine_filters filters = run((struct course){ ITEMS, ITEMS });
  assert_true(filters.n_patched > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(attributes_that_all_change_count_from_their_epoch_on),
    cmocka_unit_test(attributes_of_which_few_change_count_from_their_epoch_on),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
