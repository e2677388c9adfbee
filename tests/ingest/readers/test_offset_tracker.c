/* SPDX-License-Identifier: Apache-2.0 */
/* The offset tracker: random interleavings compared with an oracle, lost partitions, memory, and threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/readers/offset_tracker.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"
#include "tests/support/heap.h"

enum { PARTITIONS = 5, MAX_OPEN = 300 };

/* A query that is begun and not done. */
struct open_query {
  uint32_t ticket;
  int32_t partition;
  int64_t offset;
  bool is_forgotten;
};

struct oracle {
  struct dice dice;
  struct offset_tracker *tracker;
  struct open_query open[MAX_OPEN];
  size_t n_open;
  int64_t log_next[PARTITIONS];  /* where the consumer reads next */
  int64_t begun_to[PARTITIONS];  /* offset after the newest query begun since the last forget; -1: none */
  int64_t committed[PARTITIONS]; /* position listed since the last forget; -1: none */
};

static uint64_t seed;

static void begin(struct oracle *o, int32_t partition, int64_t offset)
{
  struct open_query *query = &o->open[o->n_open++];

  *query = (struct open_query){ .partition = partition, .offset = offset };
  assert_ok(offset_tracker_begin(o->tracker, partition, offset, &query->ticket, NULL));
  for (size_t i = 0; i < o->n_open - 1; i++)
    assert_int_not_equal(o->open[i].ticket, query->ticket); /* no ticket is used twice at a time */
  o->begun_to[partition] = offset + 1;
}

static void done(struct oracle *o, size_t i)
{
  offset_tracker_done(o->tracker, o->open[i].ticket);
  o->open[i] = o->open[--o->n_open];
}

/* Return the smallest open offset of a partition; if none is open, the offset after all queries that were begun. */
static int64_t may_commit(const struct oracle *o, int32_t partition)
{
  int64_t next = o->begun_to[partition];

  for (size_t i = 0; i < o->n_open; i++) {
    if (o->open[i].partition == partition && !o->open[i].is_forgotten && o->open[i].offset < next)
      next = o->open[i].offset;
  }
  return next;
}

static void check_committable(struct oracle *o)
{
  struct position positions[PARTITIONS + 1];
  size_t n = offset_tracker_committable(o->tracker, positions, PARTITIONS + 1);

  for (size_t i = 0; i < n; i++) {
    int32_t p = positions[i].partition;
    assert_in_range(p, 0, PARTITIONS - 1);
    assert_true(positions[i].next <= may_commit(o, p)); /* never past an open query */
    assert_true(positions[i].next > o->committed[p]);   /* no position is listed twice */
    o->committed[p] = positions[i].next;
  }
  assert_int_equal(offset_tracker_n_open(o->tracker), o->n_open);
}

static void forget(struct oracle *o)
{
  offset_tracker_forget(o->tracker);
  for (size_t i = 0; i < o->n_open; i++)
    o->open[i].is_forgotten = true;
  for (int32_t p = 0; p < PARTITIONS; p++) {
    if (o->committed[p] >= 0)
      o->log_next[p] = o->committed[p]; /* the next owner, perhaps this one, begins there */
    o->begun_to[p] = o->committed[p] = -1;
  }
}

static void random_interleavings_never_commit_past_an_open_query(void **state)
{
  (void)state;
  for (int round = 0; round < 60; round++) {
    struct oracle *o = calloc(1, sizeof *o);
    o->dice.state = seed + (uint64_t)round;
    assert_ok(offset_tracker_open(&o->tracker));
    for (int32_t p = 0; p < PARTITIONS; p++)
      o->begun_to[p] = o->committed[p] = -1;
    for (int step = 0; step < 2000; step++) {
      size_t what = dice_below(&o->dice, 100);
      int32_t p = (int32_t)dice_below(&o->dice, PARTITIONS);
      if (what < 48 && o->n_open < MAX_OPEN) {
        o->log_next[p] += (int64_t)dice_below(&o->dice, 10) / 8; /* sometimes there is a gap */
        begin(o, p, o->log_next[p]++);
      } else if (what < 95 && o->n_open > 0) {
        done(o, dice_below(&o->dice, o->n_open));
      } else if (what < 99) {
        check_committable(o);
      } else if (dice_below(&o->dice, 4) == 0) {
        forget(o);
      }
    }
    while (o->n_open)
      done(o, dice_below(&o->dice, o->n_open));
    check_committable(o);
    for (int32_t p = 0; p < PARTITIONS; p++) /* all are done, so everything begun is committed */
      assert_int_equal(o->committed[p], o->begun_to[p]);
    offset_tracker_close(&o->tracker);
    free(o);
  }
}

static size_t committable(struct offset_tracker *t, struct position *out)
{
  return offset_tracker_committable(t, out, 8);
}

static void the_oldest_open_query_holds_back_those_behind_it(void **state)
{
  struct offset_tracker *t;
  struct position p[8];
  uint32_t tickets[3];

  (void)state;
  assert_ok(offset_tracker_open(&t));
  for (int i = 0; i < 3; i++)
    assert_ok(offset_tracker_begin(t, 4, 10 + i, &tickets[i], NULL));
  assert_int_equal(committable(t, p), 0);
  offset_tracker_done(t, tickets[2]);
  offset_tracker_done(t, tickets[1]);
  assert_int_equal(committable(t, p), 0);
  offset_tracker_done(t, tickets[0]);
  assert_int_equal(committable(t, p), 1);
  assert_int_equal(p[0].partition, 4);
  assert_int_equal(p[0].next, 13);
  assert_int_equal(committable(t, p), 0); /* listed only once */
  offset_tracker_close(&t);
}

static void positions_that_do_not_fit_are_listed_the_next_time(void **state)
{
  struct offset_tracker *t;
  struct position p[8];
  uint32_t ticket;

  (void)state;
  assert_ok(offset_tracker_open(&t));
  for (int32_t i = 0; i < 5; i++) {
    assert_ok(offset_tracker_begin(t, i, 0, &ticket, NULL));
    offset_tracker_done(t, ticket);
  }
  assert_int_equal(offset_tracker_committable(t, p, 2), 2);
  assert_int_equal(offset_tracker_committable(t, p, 2), 2);
  assert_int_equal(offset_tracker_committable(t, p, 2), 1);
  assert_int_equal(offset_tracker_committable(t, p, 2), 0);
  offset_tracker_close(&t);
}

static void tickets_of_lost_partitions_end_without_effect(void **state)
{
  struct offset_tracker *t;
  struct position p[8];
  uint32_t old[2], new;

  (void)state;
  assert_ok(offset_tracker_open(&t));
  assert_ok(offset_tracker_begin(t, 1, 100, &old[0], NULL));
  assert_ok(offset_tracker_begin(t, 1, 101, &old[1], NULL));
  offset_tracker_done(t, old[1]);
  offset_tracker_forget(t);
  assert_ok(offset_tracker_begin(t, 1, 50, &new, NULL)); /* the partition came back, at the committed offset */
  assert_int_not_equal(new, old[0]);
  offset_tracker_done(t, old[0]);
  assert_int_equal(committable(t, p), 0);
  assert_int_equal(offset_tracker_n_open(t), 1);
  offset_tracker_done(t, new);
  assert_int_equal(committable(t, p), 1);
  assert_int_equal(p[0].next, 51);
  offset_tracker_close(&t);
}

/* A topic that was deleted and created again begins with small offsets, which are committed all the same. Queries of the
 * former log that are still open commit nothing. */
static void offsets_that_fall_are_of_another_log(void **state)
{
  struct offset_tracker *t;
  struct position position;
  uint32_t old[2], new;
  bool is_replaced;

  (void)state;
  assert_ok(offset_tracker_open(&t));
  assert_ok(offset_tracker_begin(t, 1, 100, &old[0], &is_replaced));
  assert_false(is_replaced);
  assert_ok(offset_tracker_begin(t, 1, 101, &old[1], &is_replaced));
  assert_false(is_replaced);
  offset_tracker_done(t, old[0]);
  assert_int_equal(offset_tracker_committable(t, &position, 1), 1);
  assert_int_equal(position.next, 101);
  assert_ok(offset_tracker_begin(t, 1, 3, &new, &is_replaced));
  assert_true(is_replaced);
  offset_tracker_done(t, old[1]);
  assert_int_equal(offset_tracker_committable(t, &position, 1), 0);
  offset_tracker_done(t, new);
  assert_int_equal(offset_tracker_committable(t, &position, 1), 1);
  assert_int_equal(position.next, 4);
  assert_int_equal(offset_tracker_n_open(t), 0);
  assert_int_equal(offset_tracker_n_held(t), 0);
  offset_tracker_close(&t);
}

static void memory_is_bounded_by_the_queries_that_are_open_at_once(void **state)
{
  struct offset_tracker *t;
  struct position p[8];
  uint32_t tickets[100];
  size_t after = 0;

  (void)state;
  assert_ok(offset_tracker_open(&t));
  for (int64_t round = 0; round < 2000; round++) {
    for (int64_t i = 0; i < 100; i++)
      assert_ok(offset_tracker_begin(t, (int32_t)(i % 3), round * 100 + i, &tickets[i], NULL));
    for (int i = 0; i < 100; i++)
      offset_tracker_done(t, tickets[round % 2 ? i : 99 - i]);
    if (round % 10 == 0)
      offset_tracker_forget(t);
    assert_int_equal(committable(t, p), round % 10 ? 3 : 0);
    if (round == 10)
      after = heap_used();
  }
  assert_int_equal(heap_used(), after);
  offset_tracker_close(&t);
}

/* ---- Threads: one begins queries and commits, as the query reader does; others end tickets ---- */

enum { WORKERS = 3, QUERIES = 20000, RING = 256 };

static struct offset_tracker *shared;
static _Atomic int64_t ring[RING]; /* ticket + 1, 0: none */
static _Atomic bool is_over;

static void *end_tickets(void *context)
{
  struct dice dice = { (uint64_t)(uintptr_t)context };

  for (;;) {
    bool was_over = is_over;
    bool has_any = false;
    for (size_t i = 0, from = dice_below(&dice, RING); i < RING; i++) {
      int64_t ticket = atomic_exchange(&ring[(from + i) % RING], 0);
      if (ticket) {
        offset_tracker_done(shared, (uint32_t)(ticket - 1));
        has_any = true;
      }
    }
    if (was_over && !has_any)
      return NULL;
  }
}

static void tickets_may_end_on_any_thread(void **state)
{
  pthread_t threads[WORKERS];
  struct position p[8];
  int64_t committed = 0;
  size_t at = 0;

  (void)state;
  assert_ok(offset_tracker_open(&shared));
  for (uintptr_t i = 0; i < WORKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, end_tickets, (void *)(i + 1)), 0);
  for (int64_t offset = 0; offset < QUERIES; offset++) {
    uint32_t ticket;
    assert_ok(offset_tracker_begin(shared, 0, offset, &ticket, NULL));
    while (ring[at % RING] != 0)
      at++;
    ring[at % RING] = (int64_t)ticket + 1;
    if (offset % 50 == 0 && committable(shared, p) == 1) {
      assert_true(p[0].next > committed && p[0].next <= offset + 1);
      committed = p[0].next;
    }
  }
  is_over = true;
  for (int i = 0; i < WORKERS; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(offset_tracker_n_open(shared), 0);
  if (committable(shared, p) == 1)
    committed = p[0].next;
  assert_int_equal(committed, QUERIES);
  offset_tracker_close(&shared);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_interleavings_never_commit_past_an_open_query),
    cmocka_unit_test(the_oldest_open_query_holds_back_those_behind_it),
    cmocka_unit_test(positions_that_do_not_fit_are_listed_the_next_time),
    cmocka_unit_test(tickets_of_lost_partitions_end_without_effect),
    cmocka_unit_test(offsets_that_fall_are_of_another_log),
    cmocka_unit_test(memory_is_bounded_by_the_queries_that_are_open_at_once),
    cmocka_unit_test(tickets_may_end_on_any_thread),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
