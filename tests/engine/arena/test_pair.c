/* SPDX-License-Identifier: Apache-2.0 */
/* The arena pair under threads: an arena that a reader holds is consistent and is not written until it is released. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/arena/pair.h"

enum { READERS = 4, FLIPS = 4000 };

/* The arenas' fields are used as plain memory: each is a function of the epoch. */
static struct pair pair;
static _Atomic bool is_over;

struct reader {
  pthread_t thread;
  _Atomic uint64_t n_reads;
  uint64_t n_epochs, last_epoch;
  const char *fault;
};

static void write_arena(struct arena *a, uint64_t epoch)
{
  a->epoch = epoch;
  a->n_slots = (size_t)(epoch * 7);
  a->capacity = (size_t)(epoch ^ 0x5555);
  a->n_watermark = (size_t)(epoch + 11);
}

static bool is_of_epoch(const struct arena *a, uint64_t epoch)
{
  return a->epoch == epoch && a->n_slots == epoch * 7 && a->capacity == (epoch ^ 0x5555) &&
         a->n_watermark == epoch + 11;
}

static void *read_on(void *context)
{
  struct reader *r = context;

  while (!atomic_load(&is_over) && !r->fault) {
    const struct arena *a = pair_acquire(&pair);
    uint64_t epoch = a->epoch;
    for (int i = 0; i < 3 && !r->fault; i++) {
      if (!is_of_epoch(a, epoch))
        r->fault = "the arena was written while it was held";
      if (r->n_reads % 8 == 0)
        sched_yield();
    }
    if (epoch < r->last_epoch)
      r->fault = "the epochs went back";
    r->n_epochs += epoch != r->last_epoch;
    r->last_epoch = epoch;
    r->n_reads++;
    pair_release(&pair, a);
  }
  return NULL;
}

static void publish(uint64_t epoch)
{
  write_arena(pair_back(&pair), epoch);
  pair_publish(&pair);
  pair_wait_for_readers(&pair);
  write_arena(pair_back(&pair), epoch);
}

static bool has_read_enough(struct reader *readers)
{
  for (int i = 0; i < READERS; i++) {
    if (atomic_load(&readers[i].n_reads) < 200)
      return false;
  }
  return true;
}

static void reset(void)
{
  atomic_store(&is_over, false);
  for (int i = 0; i < 2; i++)
    write_arena(&pair.arenas[i], 0);
}

static void readers_hold_whole_arenas_that_nobody_writes(void **state)
{
  struct reader readers[READERS] = { 0 };
  uint64_t n_epochs = 0;

  (void)state;
  reset();
  for (int i = 0; i < READERS; i++)
    assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
  int64_t give_up_ns = clock_now_ns() + 4 * CLOCK_NS_PER_S;
  uint64_t epoch = 0;
  while ((epoch < FLIPS || !has_read_enough(readers)) && clock_now_ns() < give_up_ns)
    publish(++epoch);
  atomic_store(&is_over, true);
  for (int i = 0; i < READERS; i++) {
    pthread_join(readers[i].thread, NULL);
    if (readers[i].fault)
      fail_msg("%s", readers[i].fault);
    n_epochs += readers[i].n_epochs;
  }
  assert_true(has_read_enough(readers));
  assert_true(epoch >= 100); /* a continuous stream of readers does not block the writer */
  assert_true(n_epochs > 0);
  assert_int_equal(atomic_load(&pair.readers[0].n), 0);
  assert_int_equal(atomic_load(&pair.readers[1].n), 0);
}

static void *publish_one(void *context)
{
  publish(*(uint64_t *)context);
  atomic_store(&is_over, true);
  return NULL;
}

static void the_writer_waits_for_the_slowest_reader_and_new_readers_do_not(void **state)
{
  uint64_t next = 1;
  pthread_t writer;

  (void)state;
  reset();
  const struct arena *old = pair_acquire(&pair), *also_old = pair_acquire(&pair);
  assert_ptr_equal(old, also_old);
  assert_int_equal(pthread_create(&writer, NULL, publish_one, &next), 0);
  for (;;) { /* until the pair is flipped */
    const struct arena *a = pair_acquire(&pair);
    bool is_new = a != old;
    if (is_new)
      assert_true(is_of_epoch(a, 1));
    pair_release(&pair, a);
    if (is_new)
      break;
    sched_yield();
  }
  pair_release(&pair, also_old);
  clock_sleep_ns(20 * CLOCK_NS_PER_MS);
  assert_false(atomic_load(&is_over));
  assert_true(is_of_epoch(old, 0));
  pair_release(&pair, old);
  pthread_join(writer, NULL);
  assert_true(atomic_load(&is_over));
  assert_true(is_of_epoch(&pair.arenas[0], 1) && is_of_epoch(&pair.arenas[1], 1));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(readers_hold_whole_arenas_that_nobody_writes),
    cmocka_unit_test(the_writer_waits_for_the_slowest_reader_and_new_readers_do_not),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
