/* SPDX-License-Identifier: Apache-2.0 */
/* A topic that does not continue the store: the catalogue is rebuilt, or the thread stops, by configuration. The former
 * items are served until a rebuild is complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/catalogue_fixture.h"
#include "tests/support/side_by_side.h"

static void accept_rebuild(const struct catalogue_fixture *f)
{
  char path[sizeof catalogue_store_path + 32];

  snprintf(path, sizeof path, "%s/accept-rebuild", catalogue_store_path);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  struct catalogue_report *report = catalogue_report_of(f->catalogue);
  catalogue_report_lock(report);
  fprintf(file, "%llu\n", (unsigned long long)report->rebuild.number);
  catalogue_report_unlock(report);
  fclose(file);
}

/* Wait until the catalogue is live, and accept a rebuild that waits. The cluster id of a new mock broker may differ,
 * and a rebuild from another cluster must be accepted. */
static void wait_until_live_accepting(struct catalogue_fixture *f)
{
  int64_t end_ns = kafka_deadline_ns();

  while (catalogue_phase(f->catalogue) != CATALOGUE_LIVE && clock_now_ns() < end_ns) {
    if (catalogue_phase(f->catalogue) == CATALOGUE_AWAITING)
      accept_rebuild(f);
    clock_sleep_ns(10 * CLOCK_NS_PER_MS);
  }
  catalogue_fixture_wait_until_live(f);
}

/* Return a partition without records. Which partition gets a key is the choice of the producer. */
static int32_t empty_partition(const struct catalogue_written *written)
{
  for (int32_t p = 0; p < CATALOGUE_PARTITIONS; p++) {
    if (written->next[p] == 0)
      return p;
  }
  fail_msg("each partition got a record");
  return -1;
}

static void another_topic_rebuilds_items_and_watermark(void **state)
{
  static const char *const first[][2] = {
    { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("1,2") }, { "d", GOOD("1,2") },
    { "e", GOOD("1,2") }, { "f", GOOD("1,2") }, { "g", GOOD("1,2") }, { "h", GOOD("1,2") },
  };
  static const char *const second[][2] = { { "b", GOOD("3,3") }, { "b", GOOD("4,4") } };
  static const char *const keys[] = { "b" };
  struct kafka_fixture k;
  struct catalogue_written was = { 0 }, written = { 0 };

  (void)state;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, first, 8, &was);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, false);
  catalogue_fixture_wait_for_all(f, &was);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);

  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, second, 2, &written);
  int32_t empty = empty_partition(&written);
  assert_true(was.next[0] && was.next[1] && was.next[2]);
  f = catalogue_fixture_open(&k, NULL, false);
  wait_until_live_accepting(f);
  catalogue_fixture_wait_for_all(f, &written);
  assert_true(counters_get(&f->counters.discontinuities) >= 1);
  catalogue_fixture_assert_items(f, keys, 1);
  /* The watermark says nothing of the former topic's records in that partition. */
  assert_false(engine_has_seen(f->engine, &(struct position){ empty, 1 }, 1));
  catalogue_fixture_close(f);

  f = catalogue_fixture_open(&k, NULL, true); /* now the store belongs to this topic */
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_assert_items(f, keys, 1);
  assert_int_equal(counters_get(&f->counters.discontinuities), 0);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void with_the_policy_stop_another_topic_raises_the_alarm(void **state)
{
  static const char *const rows[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") } };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };
  struct store_stats stats;

  (void)state;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, rows, 2, &written);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);

  catalogue_fixture_open_broker(&k);
  f = catalogue_fixture_open(&k, NULL, true);
  int64_t end_ns = kafka_deadline_ns();
  while (!catalogue_fixture_has_alarm(f) && clock_now_ns() < end_ns)
    clock_sleep_ns(5 * CLOCK_NS_PER_MS);
  assert_true(catalogue_fixture_has_alarm(f));
  assert_true(catalogue_phase(f->catalogue) != CATALOGUE_LIVE);
  store_stats(f->store, &stats);
  assert_int_equal(stats.n_items, 2);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void a_rebuild_with_too_few_items_waits_and_the_old_ones_are_served(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("1,2") } };
  static const char *const second[][2] = { { "z", GOOD("3,3") } };
  static const char *const old_keys[] = { "a", "b", "c" }, *const new_keys[] = { "z" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 }, rewritten = { 0 };

  (void)state;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, first, 3, &written);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, false);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);

  catalogue_settings.rebuild_min_percent = 50;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, second, 1, &rewritten);
  for (int round = 0; round < 2; round++) { /* before and after a restart */
    f = catalogue_fixture_open(&k, NULL, false);
    catalogue_fixture_wait_for_phase(f, CATALOGUE_AWAITING);
    assert_true(catalogue_is_serving(f->catalogue));
    catalogue_fixture_assert_items(f, old_keys, 3);
    assert_false(engine_has_seen(f->engine, &(struct position){ 0, 1 }, 1)); /* nothing of the new topic is served */
    if (round == 0)
      catalogue_fixture_close(f);
  }
  wait_until_live_accepting(f);
  catalogue_fixture_wait_for_all(f, &rewritten);
  catalogue_fixture_assert_items(f, new_keys, 1);
  assert_int_equal(counters_get(&f->counters.rebuilds), 1);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void a_restart_of_the_embedded_broker_deletes_nothing(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") } };
  static const char *const second[][2] = { { "c", GOOD("1,2") } };
  static const char *const keys[] = { "a", "b", "c" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 }, rewritten = { 0 };

  (void)state;
  catalogue_settings.is_embedded = true;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, first, 2, &written);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, false);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, second, 1, &rewritten);
  f = catalogue_fixture_open(&k, NULL, false);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_wait_for_all(f, &rewritten);
  catalogue_fixture_assert_items(f, keys, 3);
  assert_int_equal(counters_get(&f->counters.discontinuities), 0);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(another_topic_rebuilds_items_and_watermark, catalogue_fixture_reset),
    cmocka_unit_test_setup(with_the_policy_stop_another_topic_raises_the_alarm, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_rebuild_with_too_few_items_waits_and_the_old_ones_are_served, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_restart_of_the_embedded_broker_deletes_nothing, catalogue_fixture_reset),
  };

  return SIDE_BY_SIDE(tests, catalogue_fixture_make_folder, catalogue_fixture_remove_folder);
}
