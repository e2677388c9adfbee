/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue thread reads the topic into store and engine, over restarts, a full catalogue and a dead-letter topic
 * that is away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/catalogue_fixture.h"
#include "tests/support/kafka_tap.h"
#include "tests/support/log_watch.h"
#include "tests/support/side_by_side.h"
#include "tests/support/stubborn_broker.h"
#include "tests/support/tls_property.h"

static void the_topic_becomes_items_and_dead_letters(void **state)
{
  static const char *const rows[][2] = {
    { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("3,4") }, { "b", NULL }, { "bad-code", GOOD("1,8") },
    { "empty", "" }, { "text", "hello" }, { "other", "{\"parts\":{\"no\":{\"codes\":[1,2]}}}" },
    { NULL, GOOD("1,2") }, { "", GOOD("1,2") },
    { "no-parts", "{}" }, { "c", GOOD("5,6") }, { "d", GOOD("0,0") },        { "d", NULL },        { "d", GOOD("7,7") },
  };
  static const char *const keys[] = { "a", "c", "d" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };
  struct kafka_tap tap;
  char text[2048];

  (void)state;
  catalogue_fixture_open_broker(&k);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, false);
  catalogue_fixture_produce(&k, rows, sizeof rows / sizeof rows[0], &written);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_assert_items(f, keys, 3);
  assert_false(catalogue_fixture_has_alarm(f));
  assert_int_equal(counters_sum(f->counters.dead_letters, COUNTERS_LETTERS), 7);
  kafka_tap_init(&tap, &k, "letters", 1);
  for (int i = 0; i < 7; i++) {
    rd_kafka_message_t *m = kafka_tap_next(&tap, KAFKA_TIMEOUT_MS);
    assert_non_null(m);
    assert_string_equal(kafka_tap_header(m, "sluice.topic", text), "items");
    assert_true(strlen(kafka_tap_header(m, "sluice.reason", text)) > 10);
    rd_kafka_message_destroy(m);
  }
  kafka_tap_fini(&tap);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void a_restart_goes_on_where_the_store_stands(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("1,2") } };
  static const char *const second[][2] = { { "b", NULL }, { "d", GOOD("1,2") } };
  static const char *const keys[] = { "a", "c", "d" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, first, 3, &written);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_close(f);
  catalogue_fixture_produce(&k, second, 2, &written);
  for (int round = 0; round < 2; round++) { /* with new records, and without */
    f = catalogue_fixture_open(&k, NULL, true);
    catalogue_fixture_wait_until_live(f);
    catalogue_fixture_wait_for_all(f, &written);
    catalogue_fixture_assert_items(f, keys, 3);
    assert_int_equal(counters_get(&f->counters.discontinuities), 0);
    assert_int_equal(counters_get(&f->counters.applied) + counters_get(&f->counters.deleted), round ? 0 : 2);
    assert_false(catalogue_fixture_has_alarm(f));
    catalogue_fixture_close(f);
  }
  kafka_fixture_fini(&k);
}

static void a_full_catalogue_applies_deletes_and_goes_on_when_there_is_room(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") }, { "b", GOOD("1,2") }, { "c", GOOD("1,2") },
                                          { "d", GOOD("1,2") }, { "e", GOOD("1,2") } };
  static const char *const deletes[][2] = { { "a", NULL }, { "b", NULL }, { "c", NULL }, { "d", NULL }, { "e", NULL } };
  static const char *const later[][2] = { { "f", GOOD("1,2") } };
  static const char *const keys[] = { "f" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_settings.max_items = 3;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, first, 5, &written);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_wait_for_phase(f, CATALOGUE_FULL);
  assert_true(catalogue_is_serving(f->catalogue));
  catalogue_fixture_close(f);
  f = catalogue_fixture_open(&k, NULL, true); /* a restart does not help, but items are still served */
  catalogue_fixture_wait_for_phase(f, CATALOGUE_FULL);
  assert_true(catalogue_is_serving(f->catalogue));
  catalogue_fixture_produce(&k, deletes, 5, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_produce(&k, later, 1, &written);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_assert_items(f, keys, 1);
  assert_false(catalogue_fixture_has_alarm(f));
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void a_part_of_an_unknown_space_is_served_once_the_space_is_configured(void **state)
{
  static const char *const rows[][2] = {
    { "a", "{\"parts\":{\"pq\":{\"codes\":[1,2]},\"no\":{\"codes\":[1,2]}}}" },
    { "b", "{\"parts\":{\"no\":{\"codes\":[1,2]}}}" },
    { "c", "{\"parts\":{\"pq\":{\"codes\":[1,99]},\"no\":{\"codes\":[1,2]}}}" }, /* one bad part rejects all */
  };
  static const char *const known[] = { "a" }, *const unknown[] = { "a", "b" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_settings.unknown_spaces = CONFIG_UNKNOWN_KEEP;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, rows, 3, &written);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_assert_items(f, known, 1);
  assert_int_equal(counters_sum(f->counters.dead_letters, COUNTERS_LETTERS), 1);
  catalogue_fixture_close(f);
  catalogue_settings.has_second_space = true;
  f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_assert_items(f, known, 1);
  catalogue_fixture_assert_space(f, "no", unknown, 2);
  assert_int_equal(counters_get(&f->counters.applied), 0); /* the topic was not read again */
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void a_part_of_an_unknown_space_can_be_dropped(void **state)
{
  static const char *const rows[][2] = { { "a", "{\"parts\":{\"pq\":{\"codes\":[1,2]},\"no\":{\"codes\":[1,2]}}}" },
                                         { "b", "{\"parts\":{\"no\":{\"codes\":[1,2]}}}" } };
  static const char *const known[] = { "a" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_settings.unknown_spaces = CONFIG_UNKNOWN_SKIP;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, rows, 2, &written);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  assert_int_equal(counters_sum(f->counters.dead_letters, COUNTERS_LETTERS), 0);
  catalogue_fixture_close(f);
  catalogue_settings.has_second_space = true;
  f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_assert_items(f, known, 1);
  catalogue_fixture_assert_space(f, "no", known, 0);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void a_dead_letter_topic_that_is_away_does_not_stop_the_catalogue(void **state)
{
  static const char *const rows[][2] = {
    { "x", "bad" }, { "a", GOOD("1,2") }, { "x", GOOD("1,2") }, { "b", GOOD("1,2") },
  };
  static const char *const keys[] = { "a", "b", "x" };
  struct kafka_fixture k;
  struct stubborn_broker letters;
  struct catalogue_written written = { 0 };
  struct kafka_tap tap;

  (void)state;
  catalogue_fixture_open_broker(&k);
  stubborn_broker_init(&letters);
  rd_kafka_mock_broker_set_down(letters.cluster, 1);
  struct kafka_layers layers = stubborn_broker_layers(&letters, false, NULL, 0);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, &layers, true);
  catalogue_fixture_produce(&k, rows, 4, &written);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_assert_items(f, keys, 3);
  delivery_give_up_at(f->delivery, clock_now_ns());
  catalogue_fixture_close(f);
  stubborn_broker_fini(&letters);

  f = catalogue_fixture_open(&k, NULL, true); /* the dead letter is not lost: its record is read again */
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_assert_items(f, keys, 3);
  kafka_tap_init(&tap, &k, "letters", 1);
  rd_kafka_message_t *m = kafka_tap_next(&tap, KAFKA_TIMEOUT_MS);
  assert_non_null(m);
  assert_int_equal(m->key_len, 1);
  rd_kafka_message_destroy(m);
  kafka_tap_fini(&tap);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

/* The position stays before a record whose dead letter was not delivered in time: it is read again, and no record is
 * lost. */
static void a_stop_while_dead_letters_wait_loses_no_record(void **state)
{
  static const char *const first[][2] = { { "x", "bad" }, { "x", GOOD("1,2") } };
  static const char *const later[][2] = { { "x", "bad too" } };
  static const char *const keys[] = { "x" };
  struct kafka_fixture k;
  struct stubborn_broker letters;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_fixture_open_broker(&k);
  stubborn_broker_init(&letters);
  rd_kafka_mock_broker_set_down(letters.cluster, 1);
  struct kafka_layers layers = stubborn_broker_layers(&letters, false, NULL, 0);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, &layers, false);
  catalogue_fixture_wait_until_live(f);
  delivery_give_up_at(f->delivery, clock_now_ns()); /* as in a stop, before the catalogue thread is told */
  catalogue_fixture_produce(&k, first, 2, &written);
  int64_t end_ns = kafka_deadline_ns();
  while (counters_sum(f->counters.dead_letters, COUNTERS_LETTERS) < 1 && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  clock_sleep_ns(100 * CLOCK_NS_PER_MS);
  rd_kafka_mock_broker_set_up(letters.cluster, 1);
  clock_sleep_ns(1500 * CLOCK_NS_PER_MS); /* time to deliver the dead letter after all */
  catalogue_fixture_produce(&k, later, 1, &written);
  clock_sleep_ns(500 * CLOCK_NS_PER_MS);
  catalogue_fixture_close(f);
  stubborn_broker_fini(&letters);

  f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_assert_items(f, keys, 1); /* the good record of the first batch */
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void certificates_that_cannot_be_used_yet_are_waited_for(void **state)
{
  static const char *const first[][2] = { { "a", GOOD("1,2") } }, *const second[][2] = { { "b", GOOD("1,2") } },
                                          *const third[][2] = { { "c", GOOD("1,2") } };
  static const char *const keys[] = { "a", "b", "c" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_settings.kafka = (struct kafka_properties){ tls_property, 1 };
  catalogue_fixture_open_broker(&k);
  struct catalogue_fixture *f = catalogue_fixture_open(&k, NULL, true);
  catalogue_fixture_produce(&k, first, 1, &written);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  tls_property_renew(false);
  log_watch_wait("event=kafka_client_not_renewed client=catalogue");
  catalogue_fixture_produce(&k, second, 1, &written);
  catalogue_fixture_wait_for_all(f, &written);
  assert_int_equal(catalogue_phase(f->catalogue), CATALOGUE_LIVE);
  tls_property_renew(true);
  catalogue_fixture_produce(&k, third, 1, &written);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_wait_until_live(f);
  catalogue_fixture_assert_items(f, keys, 3);
  assert_false(catalogue_fixture_has_alarm(f));
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(the_topic_becomes_items_and_dead_letters, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_restart_goes_on_where_the_store_stands, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_full_catalogue_applies_deletes_and_goes_on_when_there_is_room, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_part_of_an_unknown_space_is_served_once_the_space_is_configured, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_part_of_an_unknown_space_can_be_dropped, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_dead_letter_topic_that_is_away_does_not_stop_the_catalogue, catalogue_fixture_reset),
    cmocka_unit_test_setup(a_stop_while_dead_letters_wait_loses_no_record, catalogue_fixture_reset),
    cmocka_unit_test_setup(certificates_that_cannot_be_used_yet_are_waited_for, catalogue_fixture_reset),
  };

  return SIDE_BY_SIDE(tests, catalogue_fixture_make_folder, catalogue_fixture_remove_folder);
}
