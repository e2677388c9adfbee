/* SPDX-License-Identifier: Apache-2.0 */
/* Canaries in the catalogue topic, with the thread that reads it: what is measured, and what they leave behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/canary/canary.h"
#include "tests/support/catalogue_fixture.h"
#include "tests/support/log_watch.h"
#include "tests/support/side_by_side.h"
#include "tests/support/tls_property.h"

static const struct hist_window since_start;

static uint64_t n_visible(struct catalogue_fixture *f)
{
  return hist_window_count(&since_start, &f->counters.canary_us);
}

static struct canary *open_canary(struct catalogue_fixture *f, struct engine *engine, uint64_t interval_ms)
{
  struct canary_context context = { &f->config, &f->setup, engine, &f->counters, &f->alarm };
  struct canary *c;

  f->config.canary.interval_ms = interval_ms;
  assert_ok(canary_open(&context, &c));
  return c;
}

static void wait_for_visible(struct catalogue_fixture *f, uint64_t n)
{
  int64_t end_ns = kafka_deadline_ns();

  while (n_visible(f) < n && clock_now_ns() < end_ns)
    clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  assert_true(n_visible(f) >= n);
}

static void canaries_are_measured_and_change_no_item(void **state)
{
  static const char *const rows[][2] = { { "a", GOOD("1,2") } };
  static const char *const keys[] = { "a" };
  struct catalogue_written written = { 0 };
  struct kafka_fixture kafka;

  (void)state;
  catalogue_fixture_open_broker(&kafka);
  catalogue_fixture_produce(&kafka, rows, 1, &written);
  struct catalogue_fixture *f = catalogue_fixture_open(&kafka, NULL, false);
  catalogue_fixture_wait_until_live(f);
  int64_t began_ns = clock_now_ns();
  struct canary *c = open_canary(f, f->engine, 5);
  wait_for_visible(f, 5);
  canary_close(&c);
  assert_true(hist_window_quantile(&since_start, &f->counters.canary_us, 1.0) <=
              (uint64_t)(clock_now_ns() - began_ns) / CLOCK_NS_PER_US * 2);
  assert_in_range(atomic_load(&f->counters.canary_written_ns), began_ns, clock_now_ns());
  catalogue_fixture_assert_items(f, keys, 1);
  assert_int_equal(counters_get(&f->counters.deleted), 0);
  assert_int_equal(counters_sum(f->counters.dead_letters, COUNTERS_LETTERS), 0);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&kafka);
}

/* The canary looks at an engine that the catalogue thread does not publish to: it sees nothing until the test says so.
 */
static void a_canary_that_is_not_visible_is_not_measured(void **state)
{
  struct kafka_fixture kafka;
  struct position all[CATALOGUE_PARTITIONS];
  struct engine *blind;

  (void)state;
  catalogue_fixture_open_broker(&kafka);
  struct catalogue_fixture *f = catalogue_fixture_open(&kafka, NULL, false);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_open_engine(&blind);
  struct canary *c = open_canary(f, blind, 1);
  int64_t began_ns = atomic_load(&f->counters.canary_written_ns);
  int64_t end_ns = kafka_deadline_ns();
  while (counters_get(&f->counters.replayed) == 0 && clock_now_ns() < end_ns) /* the catalogue thread has read it */
    clock_sleep_ns(2 * CLOCK_NS_PER_MS);
  assert_int_equal(counters_get(&f->counters.replayed), 1); /* and there is one at a time */
  assert_int_equal(n_visible(f), 0);
  assert_int_equal(atomic_load(&f->counters.canary_written_ns), began_ns);
  for (int32_t p = 0; p < CATALOGUE_PARTITIONS; p++)
    all[p] = (struct position){ p, 1 };
  assert_ok(engine_set_positions(blind, all, CATALOGUE_PARTITIONS));
  wait_for_visible(f, 1);
  canary_close(&c);
  engine_close(&blind);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&kafka);
}

static void certificates_that_do_not_fit_are_waited_for(void **state)
{
  struct kafka_fixture kafka;

  (void)state;
  catalogue_fixture_open_broker(&kafka);
  struct catalogue_fixture *f = catalogue_fixture_open(&kafka, NULL, false);
  catalogue_fixture_wait_until_live(f);
  f->config.query.answer_kafka = (struct kafka_properties){ tls_property, 1 };
  struct canary *c = open_canary(f, f->engine, 5);
  wait_for_visible(f, 1);
  tls_property_renew(false);
  log_watch_wait("event=kafka_client_not_renewed client=canary");
  wait_for_visible(f, n_visible(f) + 20); /* the former producer goes on */
  assert_int_equal(log_watch_count("event=kafka_client_not_renewed client=canary"), 1);
  tls_property_renew(true);
  wait_for_visible(f, n_visible(f) + 20);
  canary_close(&c);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&kafka);
}

/* The first producer reaches no broker, as one with an expired certificate does. */
static void a_canary_that_is_not_sent_keeps_no_certificates_out(void **state)
{
  struct kafka_property bootstrap[] = { { "bootstrap.servers", "127.0.0.1:9" } };
  struct kafka_fixture kafka;

  (void)state;
  catalogue_fixture_open_broker(&kafka);
  struct catalogue_fixture *f = catalogue_fixture_open(&kafka, NULL, false);
  catalogue_fixture_wait_until_live(f);
  f->config.query.answer_kafka = (struct kafka_properties){ bootstrap, 1 };
  struct canary *c = open_canary(f, f->engine, 5);
  clock_sleep_ns(200 * CLOCK_NS_PER_MS); /* the first canary waits */
  assert_int_equal(n_visible(f), 0);
  kafka_renewal_lock();
  bootstrap[0].value = kafka.properties[0].value;
  kafka_renewal_unlock();
  kafka_renewal_begin();
  wait_for_visible(f, 5);
  assert_int_equal(log_watch_count("event=canary_not_written"), 0);
  canary_close(&c);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&kafka);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(canaries_are_measured_and_change_no_item, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_canary_that_is_not_visible_is_not_measured, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_canary_that_is_not_sent_keeps_no_certificates_out, catalogue_fixture_reset),
    cmocka_unit_test_setup(certificates_that_do_not_fit_are_waited_for, catalogue_fixture_reset),
  };

  return SIDE_BY_SIDE(tests, catalogue_fixture_make_folder, catalogue_fixture_remove_folder);
}
