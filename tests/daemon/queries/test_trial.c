/* SPDX-License-Identifier: Apache-2.0 */
/* A query that a reader tries: one at a time, after all others, with a rest, and never for longer than it may wait. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/queries/query_queue.h"
#include "daemon/queries/trial.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { POOL = 4 };

static struct temp_dir dir;
static struct engine *engine;
static struct query_queue *queue;
static struct counters counters;
static struct config_space space = { .name = (char *)"v" };
static struct attribute shown[] = { { { (const uint8_t *)"title", 5 }, ATTRIBUTE_KEYWORD },
                                    { { (const uint8_t *)"price", 5 }, ATTRIBUTE_NUMBER } };
static const struct config config = { .spaces = &space, .n_spaces = 1, .attributes = { shown, 2 } };
static struct trial *trial;
static struct region scratch;
static char message[TRIAL_MESSAGE_BYTES];
static struct pending_query *taken[POOL];
static struct query_batch batch = { .queries = taken };

static int open_all(void **state)
{
  static char path[PATH_MAX];
  static const uint32_t weight = 1;
  static const float one = 1.0f;
  struct engine_space engine_space = { .name = "v", .model_path = path };
  struct engine_config engine_config = {
    .spaces = &engine_space, .n_spaces = 1, .max_items = 10, .max_k = 50, .max_batch = POOL, .attributes = { shown, 2 }
  };
  struct fair_queue_config queue_config = {
    .weights = &weight, .n_spaces = 1, .n_workers = 1, .n_queries = POOL, .max_batch = POOL, .batch_time_ns = 1
  };

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  assert_ok(engine_open(&engine_config, &engine));
  fixture_put_vector(engine, span_of_str("item"), "v", &one, 1);
  assert_ok(query_queue_open(&queue_config, 1 << 20, &queue));
  struct trial_context context = { &config, engine, queue, &counters };
  assert_ok(trial_open(&context, &trial));
  trial_allow(trial, true);
  return 0;
}

static int close_all(void **state)
{
  (void)state;
  trial_close(&trial);
  query_queue_close(&queue);
  engine_close(&engine);
  temp_dir_fini(&dir);
  region_fini(&scratch);
  return 0;
}

static enum trial_begin begin(const char *key, const char *in, uint32_t k)
{
  struct trial_query query = { span_of_str(key), span_of_str(in), k };

  message[0] = '\0';
  return trial_begin(trial, &query, message);
}

static void assert_says(const char *words)
{
  if (!strstr(message, words))
    fail_msg("\"%s\" does not say \"%s\"", message, words);
}

/* Answer the trial that a worker has taken. */
static void answer_after(uint32_t searched_us)
{
  struct answer answer = { .space = span_of_str("v"), .searched_us = searched_us };

  assert_int_equal(batch.n, 1);
  assert_ptr_equal(batch.queries[0]->trial, trial);
  trial_answer(trial, &answer, &scratch);
  query_queue_finish(queue, &batch, 1, 1);
}

static bool is_readable(void)
{
  struct pollfd fd = { .fd = trial_fd(trial), .events = POLLIN };

  return poll(&fd, 1, 0) == 1;
}

static size_t n_free(void)
{
  struct pending_query *all[POOL + 1];
  size_t n = 0;

  while ((all[n] = query_queue_take_query(queue)))
    n++;
  for (size_t i = 0; i < n; i++)
    query_queue_free_query(queue, all[i]);
  return n;
}

static void an_answer_reaches_who_asked(void **state)
{
  char *answer = NULL;

  (void)state;
  assert_int_equal(begin("item", "v", 3), TRIAL_HAS_BEGUN);
  assert_false(trial_take(trial, &answer));
  assert_true(query_queue_pop(queue, &batch));
  assert_int_equal(batch.queries[0]->query.n_likes, 1);
  assert_true(span_equal(batch.queries[0]->query.likes[0].key, span_of_str("item")));
  assert_int_equal(batch.queries[0]->query.k, 3);
  assert_int_equal(batch.queries[0]->query.n_attributes, 2);
  assert_true(span_equal(batch.queries[0]->query.attributes[1], span_of_str("price")));
  assert_false(is_readable());
  answer_after(0);
  assert_true(is_readable());
  assert_true(trial_take(trial, &answer));
  assert_non_null(strstr(answer, "\"space\""));
  free(answer);
  assert_false(is_readable());
  assert_int_equal(n_free(), POOL);
}

static void other_queries_go_first(void **state)
{
  struct pending_query *other = query_queue_take_query(queue);

  (void)state;
  *other = (struct pending_query){ .region = other->region, .bytes = other->bytes, .method = { .name = "exact" } };
  assert_int_equal(begin("item", "v", 3), TRIAL_HAS_BEGUN);
  query_queue_push(queue, other);
  assert_true(query_queue_pop(queue, &batch));
  assert_ptr_equal(batch.queries[0], other);
  assert_int_equal(batch.n, 1);
  struct pending_query *between[POOL];
  struct query_batch next = { .queries = between };
  assert_false(query_queue_pop_between(queue, &batch, &next)); /* it interrupts no search either */
  query_queue_finish(queue, &batch, 1, 1);
  assert_true(query_queue_pop(queue, &batch));
  answer_after(0);
  assert_true(trial_give_up(trial));
}

static void there_is_one_at_a_time(void **state)
{
  (void)state;
  assert_int_equal(begin("item", "v", 3), TRIAL_HAS_BEGUN);
  assert_int_equal(begin("item", "v", 3), TRIAL_MUST_WAIT);
  assert_says("another query");
  assert_false(trial_give_up(trial));
  assert_int_equal(n_free(), POOL);
  assert_int_equal(begin("item", "v", 3), TRIAL_HAS_BEGUN);
  assert_false(trial_give_up(trial));
}

static void one_that_is_given_up_while_it_is_searched_blocks_the_next(void **state)
{
  char *answer;

  (void)state;
  assert_int_equal(begin("item", "v", 3), TRIAL_HAS_BEGUN);
  assert_true(query_queue_pop(queue, &batch));
  assert_true(trial_give_up(trial));
  assert_int_equal(begin("item", "v", 3), TRIAL_MUST_WAIT);
  answer_after(0);
  assert_false(is_readable());
  assert_false(trial_take(trial, &answer)); /* nobody waits for it */
  assert_int_equal(begin("item", "v", 3), TRIAL_HAS_BEGUN);
  assert_false(trial_give_up(trial));
}

static void mistakes_take_no_place(void **state)
{
  (void)state;
  assert_int_equal(begin("item", "w", 3), TRIAL_IS_BAD);
  assert_says("w");
  assert_int_equal(begin("item", "v", 0), TRIAL_IS_BAD);
  assert_int_equal(begin("item", "v", TRIAL_K_MAX + 1), TRIAL_IS_BAD);
  assert_says("1 to 100");
  assert_int_equal(begin("item", "v", 51), TRIAL_IS_BAD); /* query.max_k */
  assert_int_equal(n_free(), POOL);
}

static void queries_that_fill_the_pool_leave_no_place(void **state)
{
  struct pending_query *all[POOL];

  (void)state;
  for (size_t i = 0; i < POOL; i++)
    all[i] = query_queue_take_query(queue);
  assert_int_equal(begin("item", "v", 3), TRIAL_MUST_WAIT);
  assert_says("too many queries");
  for (size_t i = 0; i < POOL; i++)
    query_queue_free_query(queue, all[i]);
}

static void without_workers_there_are_none(void **state)
{
  (void)state;
  trial_allow(trial, false);
  assert_int_equal(begin("item", "v", 3), TRIAL_MUST_WAIT);
  assert_says("does not search");
  trial_allow(trial, true);
}

/* The last test: the rest that follows is nine times 100 s. */
static void a_long_search_is_followed_by_a_rest(void **state)
{
  uint64_t n_refused = counters_get(&counters.tries_refused);
  char *answer;

  (void)state;
  assert_int_equal(begin("item", "v", 3), TRIAL_HAS_BEGUN);
  assert_true(query_queue_pop(queue, &batch));
  answer_after(100 * 1000 * 1000);
  assert_true(trial_take(trial, &answer));
  free(answer);
  assert_int_equal(begin("item", "v", 3), TRIAL_MUST_WAIT);
  const char *rest = strstr(message, "try again in ");
  assert_non_null(rest);
  assert_in_range(atoi(rest + strlen("try again in ")), 600, 900); /* less on a machine that stands still meanwhile */
  assert_int_equal(counters_get(&counters.tries_refused), n_refused + 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_answer_reaches_who_asked),
    cmocka_unit_test(other_queries_go_first),
    cmocka_unit_test(there_is_one_at_a_time),
    cmocka_unit_test(one_that_is_given_up_while_it_is_searched_blocks_the_next),
    cmocka_unit_test(mistakes_take_no_place),
    cmocka_unit_test(queries_that_fill_the_pool_leave_no_place),
    cmocka_unit_test(without_workers_there_are_none),
    cmocka_unit_test(a_long_search_is_followed_by_a_rest),
  };

  return cmocka_run_group_tests(tests, open_all, close_all);
}
