/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of fair queueing. Costs and times are inputs: there are no clock and no threads. One simulated worker searches
 * batch after batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/queries/fair_queue.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { BATCH = 32, MAX_QUERIES = 5000 };

#define MS CLOCK_NS_PER_MS

static uint64_t seed;

struct server {
  struct fair_queue *f;
  struct pending_query queries[MAX_QUERIES];
  size_t n_queries;
  struct pending_query *taken[BATCH]; /* the array of `batch` */
  struct query_batch batch;
  int64_t now_ns;
};

static struct server *open_server(const uint32_t *weights, size_t n_spaces, size_t n_workers)
{
  struct server *s = calloc(1, sizeof *s);
  struct fair_queue_config config = {
    .weights = weights,
    .n_spaces = n_spaces,
    .n_workers = n_workers,
    .n_queries = MAX_QUERIES,
    .max_batch = BATCH,
    .batch_time_ns = 50 * MS,
  };

  assert_non_null(s);
  assert_ok(fair_queue_open(&config, &s->f));
  s->batch.queries = s->taken;
  s->now_ns = 1000 * MS;
  return s;
}

static void close_server(struct server *s)
{
  fair_queue_close(&s->f);
  assert_null(s->f);
  free(s);
}

static struct method method_of(const char *name, uint32_t argument)
{
  struct method method = { .args = { argument }, .n_args = argument > 0 };

  snprintf(method.name, sizeof method.name, "%s", name);
  return method;
}

static int64_t estimate(const struct server *s, size_t space, const struct method *method, int64_t now_ns)
{
  const struct query_class of = { .space = space, .method = *method };

  return fair_queue_estimate_ns(s->f, &of, now_ns);
}

static struct pending_query *push_to(struct server *s, size_t space, size_t number, const char *name,
                                     uint32_t argument)
{
  assert_true(s->n_queries < MAX_QUERIES);
  struct pending_query *query = &s->queries[s->n_queries++];
  query->ticket = (uint32_t)s->n_queries;
  query->space = space;
  query->number = number;
  query->method = method_of(name, argument);
  query->received_ns = s->now_ns;
  fair_queue_push(s->f, query);
  return query;
}

static struct pending_query *push(struct server *s, size_t space, const char *name, uint32_t argument)
{
  return push_to(s, space, 0, name, argument);
}

static struct pending_query *push_background(struct server *s, size_t space)
{
  s->queries[s->n_queries].query.is_background = true;
  return push(s, space, "m", 0);
}

/* At random, the query is one of the background, and has a limit on the hits of a value, or hits that differ. */
static void push_any(struct server *s, struct dice *dice)
{
  struct pending_query *query = &s->queries[s->n_queries];

  query->query.is_background = dice_below(dice, 2);
  if (dice_below(dice, 2)) {
    query->query.max_per.n = (uint32_t)dice_below(dice, 2);
    query->query.mmr.diversity = query->query.max_per.n ? 0 : 0.5;
  }
  push(s, dice_below(dice, 2), "m", (uint32_t)dice_below(dice, 3));
}

/* 1 if it does, else 0. */
static size_t has_either(const struct pending_query *query)
{
  return query->query.max_per.n > 0 || query->query.mmr.diversity > 0;
}

/* Search the next batch at cost_ns a query. Returns how many queries it had. */
static size_t serve(struct server *s, const int64_t *cost_ns)
{
  if (!fair_queue_pop(s->f, s->now_ns, &s->batch))
    return 0;
  const struct pending_query *first = s->batch.queries[0];
  for (size_t i = 0; i < s->batch.n; i++) {
    assert_int_equal(s->batch.queries[i]->space, first->space);
    assert_int_equal(s->batch.queries[i]->number, first->number);
    assert_memory_equal(&s->batch.queries[i]->method, &first->method, sizeof first->method);
    assert_int_equal(has_either(s->batch.queries[i]), has_either(first));
    assert_int_equal(s->batch.queries[i]->query.is_background, first->query.is_background);
    assert_true(i == 0 || s->batch.queries[i]->ticket > s->batch.queries[i - 1]->ticket);
  }
  int64_t all_ns = cost_ns[first->space] * (int64_t)s->batch.n;
  s->now_ns += all_ns;
  fair_queue_done(s->f, &s->batch, s->batch.n, all_ns, s->now_ns);
  return s->batch.n;
}

static const uint32_t equal[] = { 1, 1, 1, 1 };

static void a_class_is_searched_in_its_order_and_a_batch_holds_one_class(void **state)
{
  static const int64_t cost_ns[] = { MS, MS };
  struct server *s = open_server(equal, 2, 1);
  struct dice dice = { seed };
  uint32_t newest[2][3][2][2] = { 0 };
  size_t n = 0;

  (void)state;
  for (int i = 0; i < 500; i++)
    push_any(s, &dice);
  while (serve(s, cost_ns)) {
    for (size_t i = 0; i < s->batch.n; i++, n++) {
      const struct pending_query *query = s->batch.queries[i];
      uint32_t *last = &newest[query->space][query->method.args[0]][has_either(query)][query->query.is_background];
      assert_true(query->ticket > *last);
      *last = query->ticket;
    }
  }
  assert_int_equal(n, 500);
  assert_int_equal(fair_queue_n(s->f), 0);
  close_server(s);
}

static void a_batch_is_bounded_in_time_and_the_first_of_a_class_is_one_query(void **state)
{
  static const int64_t costs[][3] = { { MS, 1, 32 }, { 10 * MS, 1, 5 }, { 49 * MS, 1, 1 }, { 500 * MS, 1, 1 } };

  (void)state;
  for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
    struct server *s = open_server(equal, 1, 1);
    for (int j = 0; j < 200; j++)
      push(s, 0, "m", 0);
    assert_int_equal(serve(s, costs[i]), costs[i][1]);
    for (int j = 0; j < 3; j++)
      assert_int_equal(serve(s, costs[i]), costs[i][2]);
    close_server(s);
  }
}

/* Fast queries come one at a time. In another space slow queries always wait. */
static void a_fast_query_waits_for_one_slow_batch_at_most(void **state)
{
  static const int64_t cost_ns[] = { 40 * MS, MS / 10 };
  struct server *s = open_server(equal, 2, 1);
  struct dice dice = { seed };

  (void)state;
  for (int i = 0; i < 1000; i++)
    push(s, 0, "slow", 0);
  serve(s, cost_ns);
  for (int i = 0; i < 200; i++) {
    int64_t came_ns = s->now_ns;
    push(s, 1, "fast", 0);
    if (dice_below(&dice, 2)) { /* it arrives while a slow batch runs */
      assert_true(serve(s, cost_ns));
    }
    while (fair_queue_n(s->f) && s->batch.queries[0]->space != 1)
      assert_true(serve(s, cost_ns));
    assert_true(s->now_ns - came_ns <= 51 * MS);
    assert_true(serve(s, cost_ns)); /* a slow batch in between */
  }
  close_server(s);
}

static void spaces_share_by_their_weights_and_methods_of_one_share_what_it_has(void **state)
{
  static const uint32_t weights[] = { 1, 3 };
  static const int64_t cost_ns[] = { 10 * MS, MS };
  struct server *s = open_server(weights, 2, 1);
  int64_t taken_ns[2] = { 0 };

  (void)state;
  for (int i = 0; i < 500; i++) { /* the first space has five classes */
    push(s, 0, "m", (uint32_t)i % 5 + 1);
    for (int j = 0; j < 8; j++)
      push(s, 1, "m", 0);
  }
  while (s->now_ns < 4000 * MS) {
    int64_t before_ns = s->now_ns;
    assert_true(serve(s, cost_ns));
    taken_ns[s->batch.queries[0]->space] += s->now_ns - before_ns;
  }
  assert_true(taken_ns[1] > taken_ns[0] * 27 / 10);
  assert_true(taken_ns[1] < taken_ns[0] * 33 / 10);
  close_server(s);
}

/* serve() checks that no batch has two generations. */
static void generations_of_a_space_are_searched_apart_and_share_its_weight(void **state)
{
  static const int64_t cost_ns[] = { 10 * MS, 10 * MS };
  struct server *s = open_server(equal, 2, 1);
  int64_t taken_ns[2] = { 0 }, of_second_ns = 0;

  (void)state;
  for (size_t i = 0; i < 1200; i++)
    push_to(s, i % 2, i % 2 ? 0 : 1 + i / 2 % 2, "m", 0);
  while (s->now_ns < 5000 * MS) {
    int64_t before_ns = s->now_ns;
    assert_true(serve(s, cost_ns));
    taken_ns[s->batch.queries[0]->space] += s->now_ns - before_ns;
    of_second_ns += s->batch.queries[0]->number == 2 ? s->now_ns - before_ns : 0;
  }
  assert_in_range(taken_ns[0], taken_ns[1] * 9 / 10, taken_ns[1] * 11 / 10);
  assert_in_range(2 * of_second_ns, taken_ns[0] * 9 / 10, taken_ns[0] * 11 / 10);
  close_server(s);
}

static void being_idle_earns_no_credit(void **state)
{
  static const int64_t cost_ns[] = { 10 * MS, 10 * MS };
  struct server *s = open_server(equal, 2, 1);
  size_t n_of_first = 0;

  (void)state;
  for (int i = 0; i < 1000; i++)
    push(s, 0, "m", 0);
  for (int i = 0; i < 100; i++)
    serve(s, cost_ns); /* only one space is busy for a while */
  for (int i = 0; i < 500; i++)
    push(s, 1, "m", 0);
  for (int i = 0; i < 40; i++) {
    serve(s, cost_ns);
    n_of_first += s->batch.queries[0]->space == 0;
  }
  assert_in_range(n_of_first, 12, 28);
  close_server(s);
}

/* ---- Background queries ---- */

/* Serve until `end_ns` with 32 background queries of the second space always waiting, and queries of the first space
 * that come every period_ns. Returns the time of the background queries, and the longest latency of the others. */
static int64_t serve_both(struct server *s, const int64_t *cost_ns, int64_t period_ns, int64_t end_ns,
                          int64_t *longest_ns)
{
  int64_t due_ns = s->now_ns, background_ns = 0;
  size_t n_background = 0, n_others = 0;

  *longest_ns = 0;
  while (s->now_ns < end_ns) {
    for (; due_ns <= s->now_ns; due_ns += period_ns, n_others++)
      push(s, 0, "m", 0)->received_ns = due_ns;
    for (; n_background < BATCH; n_background++)
      push_background(s, 1);
    int64_t before_ns = s->now_ns;
    assert_true(serve(s, cost_ns));
    if (s->batch.queries[0]->query.is_background) {
      n_background -= s->batch.n;
      background_ns += s->now_ns - before_ns;
    }
    for (size_t i = 0; i < s->batch.n && !s->batch.queries[0]->query.is_background; i++) {
      int64_t took_ns = s->now_ns - s->batch.queries[i]->received_ns;
      *longest_ns = took_ns > *longest_ns ? took_ns : *longest_ns;
    }
  }
  assert_true(n_others > 100);
  return background_ns;
}

/* The others need half of the time. */
static void background_queries_get_the_time_that_others_leave(void **state)
{
  static const int64_t cost_ns[] = { MS, MS };
  struct server *s = open_server(equal, 2, 1);
  int64_t began_ns = s->now_ns, longest_ns;

  (void)state;
  int64_t background_ns = serve_both(s, cost_ns, 2 * MS, began_ns + 2000 * MS, &longest_ns);
  assert_in_range(background_ns, 900 * MS, 1100 * MS);
  assert_in_range(longest_ns, 0, 35 * MS); /* a background batch of 12 ms, and the queries that came meanwhile */
  close_server(s);
}

/* The others need all of it. */
static void background_queries_get_a_twentieth_if_others_leave_no_time(void **state)
{
  static const int64_t cost_ns[] = { MS, MS };
  static const uint32_t weights[][2] = { { 1, 1 }, { 1, 100 }, { 100, 1 } };
  int64_t longest_ns;

  (void)state;
  for (size_t i = 0; i < 3; i++) {
    struct server *s = open_server(weights[i], 2, 1);
    double own = weights[i][1], sum = weights[i][0] + own, lightest = own < weights[i][0] ? own : weights[i][0];
    double share = lightest * own / sum / 20 / weights[i][0]; /* of what the others of the first space get */
    int64_t began_ns = s->now_ns, background_ns = serve_both(s, cost_ns, MS, began_ns + 4000 * MS, &longest_ns);
    assert_in_range(background_ns, (int64_t)(4000 * share * 0.8) * MS, (int64_t)(4000 * share * 1.2 + 30) * MS);
    close_server(s);
  }
}

static void background_queries_count_little_in_the_estimates_of_others(void **state)
{
  static const int64_t cost_ns[] = { 10 * MS };
  struct server *s = open_server(equal, 1, 1);
  struct query_class of = { .method = method_of("m", 0) };

  (void)state;
  push(s, 0, "m", 0);
  push_background(s, 0);
  while (serve(s, cost_ns)) /* both costs are known */
    ;
  for (int i = 0; i < 200; i++)
    push_background(s, 0);
  assert_in_range(fair_queue_estimate_ns(s->f, &of, s->now_ns), 10 * MS, 11 * MS);
  of.is_background = true;
  assert_in_range(fair_queue_estimate_ns(s->f, &of, s->now_ns), 2000 * MS, 2020 * MS);
  for (int i = 0; i < 50; i++)
    push(s, 0, "m", 0);
  assert_in_range(fair_queue_estimate_ns(s->f, &of, s->now_ns), 2500 * MS, 2520 * MS);
  close_server(s);
}

static void an_estimate_is_near_the_real_time(void **state)
{
  static const int64_t cost_ns[] = { 20 * MS, MS, MS / 2 };
  struct server *s = open_server(equal, 3, 1);

  (void)state;
  for (size_t space = 0; space < 3; space++) { /* let the costs be known */
    for (int i = 0; i < 40; i++)
      push(s, space, "m", 0);
  }
  while (serve(s, cost_ns))
    ;
  struct dice dice = { seed };
  for (int round = 0; round < 30; round++) {
    for (int i = (int)dice_below(&dice, 60); i > 0; i--)
      push(s, dice_below(&dice, 3), "m", 0);
    size_t space = dice_below(&dice, 3);
    struct method method = method_of("m", 0);
    int64_t came_ns = s->now_ns, estimate_ns = estimate(s, space, &method, came_ns);
    const struct pending_query *query = push(s, space, "m", 0);
    for (bool is_done = false; !is_done;) {
      assert_true(serve(s, cost_ns));
      for (size_t i = 0; i < s->batch.n; i++)
        is_done |= s->batch.queries[i] == query;
    }
    int64_t took_ns = s->now_ns - came_ns;
    assert_true(took_ns <= estimate_ns + 105 * MS); /* within two more batches */
    assert_true(took_ns >= estimate_ns - 105 * MS);
    while (serve(s, cost_ns))
      ;
  }
  close_server(s);
}

/* The load is three times what one worker can do. Deadlines are 500 ms, and the estimate refuses queries. */
static void under_overload_answers_come_within_the_limit(void **state)
{
  static const int64_t cost_ns[] = { 6 * MS };
  struct server *s = open_server(equal, 1, 1);
  struct method method = method_of("m", 0);
  int64_t due_ns = s->now_ns, worst_ns = 0;
  size_t n_refused = 0, n_answered = 0;

  (void)state;
  for (int i = 0; i < 2500;) {
    if (due_ns <= s->now_ns || fair_queue_n(s->f) == 0) {
      s->now_ns = due_ns > s->now_ns ? due_ns : s->now_ns;
      if (estimate(s, 0, &method, due_ns) > 500 * MS - (s->now_ns - due_ns)) {
        n_refused++;
      } else {
        push(s, 0, "m", 0)->received_ns = due_ns;
      }
      due_ns += 2 * MS;
      i++;
      continue;
    }
    assert_true(serve(s, cost_ns));
    for (size_t j = 0; j < s->batch.n; j++, n_answered++) {
      int64_t took_ns = s->now_ns - s->batch.queries[j]->received_ns;
      worst_ns = took_ns > worst_ns ? took_ns : worst_ns;
    }
  }
  assert_true(worst_ns < 560 * MS);
  assert_true(n_answered > 700); /* of at most 833 */
  assert_true(n_refused > 1400);
  close_server(s);
}

/* A class that was slow once must not be refused forever. */
static void an_old_measurement_refuses_no_query(void **state)
{
  static const int64_t slow_ns[] = { 5000 * MS }, fast_ns[] = { MS };
  struct server *s = open_server(equal, 1, 2);
  struct method method = method_of("m", 0);

  (void)state;
  push(s, 0, "m", 0);
  serve(s, slow_ns);
  assert_true(estimate(s, 0, &method, s->now_ns) >= 4000 * MS);
  s->now_ns += 2000 * MS;
  assert_int_equal(estimate(s, 0, &method, s->now_ns), 0);
  for (int i = 0; i < 40; i++) {
    push(s, 0, "m", 0);
    assert_true(fair_queue_pop(s->f, s->now_ns, &s->batch));
    if (i == 0)
      assert_false(s->batch.is_fresh);
    fair_queue_done(s->f, &s->batch, 1, fast_ns[0], s->now_ns);
  }
  assert_true(estimate(s, 0, &method, s->now_ns) < 2 * MS);
  close_server(s);
}

static void an_estimate_counts_running_batches_and_shares_waiting_ones_over_workers(void **state)
{
  struct server *s = open_server(equal, 2, 4);
  struct method method = method_of("m", 0), other = method_of("other", 0);
  struct query_batch batches[4];
  struct pending_query *taken[4][BATCH];

  (void)state;
  push(s, 0, "m", 0);
  assert_int_equal(serve(s, (int64_t[]){ 40 * MS, 0 }), 1);
  for (int i = 0; i < 40; i++)
    push(s, 0, "m", 0);
  assert_in_range(estimate(s, 0, &method, s->now_ns), 400 * MS, 460 * MS);
  for (int i = 0; i < 4; i++) {
    batches[i].queries = taken[i];
    assert_true(fair_queue_pop(s->f, s->now_ns, &batches[i]));
    assert_int_equal(batches[i].n, 1);
  }
  assert_in_range(estimate(s, 1, &other, s->now_ns), 40 * MS, 40 * MS); /* the running batches */
  assert_in_range(estimate(s, 1, &other, s->now_ns + 30 * MS), 10 * MS, 10 * MS);
  for (int i = 0; i < 4; i++)
    fair_queue_done(s->f, &batches[i], 1, 40 * MS, s->now_ns + 40 * MS);
  close_server(s);
}

/* ---- Short batches between the steps of a long one ---- */

/* Search a query of each class, so that its cost is known, then begin a batch of the first class. */
static void begin_long(struct server *s, const int64_t *cost_ns, size_t n_spaces)
{
  for (size_t i = 0; i < n_spaces; i++) {
    push(s, i, "m", 0);
    assert_int_equal(serve(s, cost_ns), 1);
  }
  push(s, 0, "m", 0);
  assert_true(fair_queue_pop(s->f, s->now_ns, &s->batch));
}

/* Serve short batches as long as any may interrupt the running one. Returns their time. */
static int64_t serve_between(struct server *s, const int64_t *cost_ns)
{
  struct pending_query *taken[BATCH];
  struct query_batch between = { .queries = taken };
  int64_t sum_ns = 0;

  while (fair_queue_pop_between(s->f, &s->batch, s->now_ns, &between)) {
    int64_t all_ns = cost_ns[taken[0]->space] * (int64_t)between.n;
    s->now_ns += all_ns;
    sum_ns += all_ns;
    fair_queue_done(s->f, &between, between.n, all_ns, s->now_ns);
  }
  return sum_ns;
}

static void a_short_batch_interrupts_a_long_one(void **state)
{
  static const int64_t cost_ns[] = { 1000 * MS, MS };
  struct server *s = open_server(equal, 2, 1);

  (void)state;
  begin_long(s, cost_ns, 2);
  assert_int_equal(serve_between(s, cost_ns), 0); /* nothing waits */
  for (int i = 0; i < 3; i++)
    push(s, 1, "m", 0);
  assert_int_equal(serve_between(s, cost_ns), 3 * MS);
  fair_queue_done(s->f, &s->batch, 1, cost_ns[0], s->now_ns + cost_ns[0]);
  assert_int_equal(serve(s, cost_ns), 0);
  close_server(s);
}

/* A flood of short queries gets the share that its weight gives it, while the long batch gets the rest. */
static void short_batches_take_no_more_than_their_share(void **state)
{
  static const uint32_t weights[] = { 1, 2 };
  static const int64_t cost_ns[] = { 400 * MS, MS };
  struct server *s = open_server(weights, 2, 1);

  (void)state;
  begin_long(s, cost_ns, 2);
  for (int i = 0; i < 4000; i++)
    push(s, 1, "m", 0);
  int64_t sum_ns = serve_between(s, cost_ns);
  assert_in_range(sum_ns, 800 * MS, 900 * MS);
  close_server(s);
}

/* However many classes come first, a search holds its epoch for no more than a second longer than it takes. */
static void a_flood_of_classes_pauses_a_batch_for_a_second_at_most(void **state)
{
  static const int64_t cost_ns[] = { 1000 * MS, 5 * MS };
  struct server *s = open_server(equal, 2, 1);
  enum { CLASSES = 20 };

  (void)state;
  for (uint32_t i = 1; i <= CLASSES; i++) {
    push(s, 0, "short", i);
    while (serve(s, &cost_ns[1]))
      ;
  }
  begin_long(s, cost_ns, 2);
  for (uint32_t i = 0; i < 2000; i++)
    push(s, 0, "short", i % CLASSES + 1);
  assert_in_range(serve_between(s, (const int64_t[]){ cost_ns[1], cost_ns[1] }), 1000 * MS, 1100 * MS);
  assert_int_equal(serve_between(s, cost_ns), 0);
  s->now_ns += 200 * MS; /* the search goes on, and may be interrupted again */
  assert_in_range(serve_between(s, (const int64_t[]){ cost_ns[1], cost_ns[1] }), 200 * MS, 300 * MS);
  close_server(s);
}

static void only_measured_and_much_shorter_batches_interrupt(void **state)
{
  static const int64_t cost_ns[] = { 100 * MS, 30 * MS };
  struct server *s = open_server(equal, 2, 1);

  (void)state;
  begin_long(s, cost_ns, 2);
  push(s, 1, "m", 0);       /* not much shorter */
  push(s, 1, "unknown", 0); /* may be long */
  push(s, 0, "m", 0);       /* comes after the running batch of its own class */
  assert_int_equal(serve_between(s, cost_ns), 0);
  s->now_ns += 120 * MS; /* it takes longer than expected */
  assert_int_equal(serve_between(s, cost_ns), 30 * MS);
  close_server(s);
}

/* Within a space, classes come in the order of their virtual times too. */
static void a_method_interrupts_another_of_its_space(void **state)
{
  static const int64_t long_ns[] = { 1000 * MS }, short_ns[] = { MS };
  struct server *s = open_server(equal, 1, 1);

  (void)state;
  push(s, 0, "short", 0);
  assert_int_equal(serve(s, short_ns), 1);
  begin_long(s, long_ns, 1);
  for (int i = 0; i < 4000; i++)
    push(s, 0, "short", 0);
  assert_in_range(serve_between(s, short_ns), 1000 * MS, 1100 * MS);
  close_server(s);
}

static void an_estimate_does_not_count_what_may_be_interrupted(void **state)
{
  static const int64_t cost_ns[] = { 1000 * MS, MS };
  struct server *s = open_server(equal, 2, 1);
  struct method method = method_of("m", 0);

  (void)state;
  begin_long(s, cost_ns, 2);
  assert_in_range(estimate(s, 1, &method, s->now_ns), 1000 * MS, 1100 * MS);
  fair_queue_note_pause(s->f, &s->batch);
  assert_in_range(estimate(s, 1, &method, s->now_ns), MS, 2 * MS);
  assert_in_range(estimate(s, 0, &method, s->now_ns), 2000 * MS, 2100 * MS);
  close_server(s);
}

static void classes_beyond_the_table_take_the_place_of_idle_ones(void **state)
{
  static const int64_t cost_ns[] = { MS, MS };
  struct server *s = open_server(equal, 2, 1);

  (void)state;
  for (uint32_t i = 0; i < 20000; i++) { /* every query is of another class, and few wait at a time */
    s->n_queries = i % 100;
    push(s, i % 2, "m", i + 1);
    if (i % 100 == 99)
      while (serve(s, cost_ns))
        ;
  }
  s->n_queries = 0;
  for (uint32_t i = 0; i < MAX_QUERIES; i++) /* as many classes as can wait at a time */
    push(s, i % 2, "n", i + 1);
  size_t n = 0;
  while (serve(s, cost_ns))
    n++;
  assert_int_equal(n, MAX_QUERIES);
  close_server(s);
}

static void all_waiting_queries_can_be_taken_away(void **state)
{
  struct server *s = open_server(equal, 2, 1);
  size_t n = 0;

  (void)state;
  assert_null(fair_queue_take_all(s->f));
  for (uint32_t i = 0; i < 90; i++)
    push(s, i % 2, "m", i % 7);
  for (struct pending_query *query = fair_queue_take_all(s->f); query; query = query->next)
    n++;
  assert_int_equal(n, 90);
  assert_int_equal(fair_queue_n(s->f), 0);
  assert_false(fair_queue_pop(s->f, s->now_ns, &s->batch));
  push(s, 1, "m", 3);
  assert_true(fair_queue_pop(s->f, s->now_ns, &s->batch));
  assert_int_equal(s->batch.n, 1);
  close_server(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_class_is_searched_in_its_order_and_a_batch_holds_one_class),
    cmocka_unit_test(a_batch_is_bounded_in_time_and_the_first_of_a_class_is_one_query),
    cmocka_unit_test(a_fast_query_waits_for_one_slow_batch_at_most),
    cmocka_unit_test(spaces_share_by_their_weights_and_methods_of_one_share_what_it_has),
    cmocka_unit_test(generations_of_a_space_are_searched_apart_and_share_its_weight),
    cmocka_unit_test(being_idle_earns_no_credit),
    cmocka_unit_test(background_queries_get_the_time_that_others_leave),
    cmocka_unit_test(background_queries_get_a_twentieth_if_others_leave_no_time),
    cmocka_unit_test(background_queries_count_little_in_the_estimates_of_others),
    cmocka_unit_test(an_estimate_is_near_the_real_time),
    cmocka_unit_test(under_overload_answers_come_within_the_limit),
    cmocka_unit_test(an_old_measurement_refuses_no_query),
    cmocka_unit_test(an_estimate_counts_running_batches_and_shares_waiting_ones_over_workers),
    cmocka_unit_test(a_short_batch_interrupts_a_long_one),
    cmocka_unit_test(short_batches_take_no_more_than_their_share),
    cmocka_unit_test(a_flood_of_classes_pauses_a_batch_for_a_second_at_most),
    cmocka_unit_test(only_measured_and_much_shorter_batches_interrupt),
    cmocka_unit_test(a_method_interrupts_another_of_its_space),
    cmocka_unit_test(an_estimate_does_not_count_what_may_be_interrupted),
    cmocka_unit_test(classes_beyond_the_table_take_the_place_of_idle_ones),
    cmocka_unit_test(all_waiting_queries_can_be_taken_away),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
