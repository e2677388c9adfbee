/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes from the topic to the engine: changes, restarts, changes of the configuration, and wrong values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/support/assert_ok.h"
#include "tests/support/catalogue_fixture.h"
#include "tests/support/side_by_side.h"

static const struct attribute list[] = {
  { { (const uint8_t *)"country", 7 }, ATTRIBUTE_KEYWORD },
  { { (const uint8_t *)"price", 5 }, ATTRIBUTE_NUMBER },
  { { (const uint8_t *)"tags", 4 }, ATTRIBUTE_KEYWORDS },
};

#define ITEM(attributes) "{\"parts\":{\"pq\":{\"codes\":[1,2]}},\"attributes\":{" attributes "}}"
#define ALONE(attributes) "{\"attributes\":{" attributes "}}"

static void assert_counts(struct catalogue_fixture *f, uint64_t country, uint64_t price)
{
  assert_int_equal(engine_attribute_count(f->engine, 0), country);
  assert_int_equal(engine_attribute_count(f->engine, 1), price);
}

static struct catalogue_fixture *start(struct kafka_fixture *k, const struct attribute *v, size_t n)
{
  catalogue_settings.attributes = (struct attributes){ v, n };
  struct catalogue_fixture *f = catalogue_fixture_open(k, NULL, true);
  catalogue_fixture_wait_until_live(f);
  return f;
}

static void attributes_follow_the_topic_and_survive_restarts(void **state)
{
  static const char *const first[][2] = {
    { "a", ITEM("\"country\":\"de\",\"price\":9.5,\"tags\":[\"b\",\"a\",\"b\"],\"colour\":\"red\"") },
    { "b", ITEM("\"country\":\"at\"") },
    { "c", ITEM("\"price\":3") },
  };
  static const char *const later[][2] = {
    { "a", ALONE("\"country\":null") }, { "b", ALONE("\"price\":1") }, { "c", GOOD("3,4") },
    { "d", ALONE("\"price\":1") },      { "e", ALONE("\"colour\":\"red\"") },
  };
  static const char *const keys[] = { "a", "b", "c" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, first, 3, &written);
  struct catalogue_fixture *f = start(&k, list, 3);
  catalogue_fixture_wait_for_all(f, &written);
  assert_counts(f, 2, 2);
  catalogue_fixture_produce(&k, later, 5, &written);
  catalogue_fixture_wait_for_all(f, &written);
  assert_counts(f, 1, 4); /* d has no part, but its price */
  catalogue_fixture_assert_items(f, keys, 3);
  assert_int_equal(counters_sum(f->counters.dead_letters, COUNTERS_LETTERS), 0);
  catalogue_fixture_close(f);
  f = start(&k, list, 3);
  assert_counts(f, 1, 4);
  assert_int_equal(engine_attribute_count(f->engine, 2), 1);
  assert_int_equal(counters_get(&f->counters.applied), 0); /* the topic was not read again */
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void an_attribute_that_leaves_comes_back_absent(void **state)
{
  static const char *const rows[][2] = { { "a", ITEM("\"country\":\"de\",\"price\":9.5") } };
  static const char *const again[][2] = { { "a", ALONE("\"price\":7") } };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, rows, 1, &written);
  struct catalogue_fixture *f = start(&k, list, 2);
  catalogue_fixture_wait_for_all(f, &written);
  assert_counts(f, 1, 1);
  catalogue_fixture_close(f);
  f = start(&k, list, 1);
  assert_int_equal(engine_attribute_count(f->engine, 0), 1);
  catalogue_fixture_close(f);
  f = start(&k, list, 2);
  assert_counts(f, 1, 0);
  catalogue_fixture_produce(&k, again, 1, &written);
  catalogue_fixture_wait_for_all(f, &written);
  assert_counts(f, 1, 1);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

static void wrong_values_are_dead_letters_and_lose_nothing_beside_them(void **state)
{
  static const char *const rows[][2] = {
    { "a", ITEM("\"country\":\"de\"") },
    { "b", ITEM("\"country\":7") },
    { "c", ITEM("\"price\":\"cheap\"") },
    { "d", ITEM("\"tags\":\"a\"") },
    { "e", ALONE("") },
    { "f", ITEM("\"price\":1") },
  };
  static const char *const keys[] = { "a", "f" };
  struct kafka_fixture k;
  struct catalogue_written written = { 0 };

  (void)state;
  catalogue_fixture_open_broker(&k);
  catalogue_fixture_produce(&k, rows, 6, &written);
  struct catalogue_fixture *f = start(&k, list, 3);
  catalogue_fixture_wait_for_all(f, &written);
  catalogue_fixture_assert_items(f, keys, 2);
  assert_counts(f, 1, 1);
  catalogue_fixture_close(f);
  kafka_fixture_fini(&k);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(attributes_follow_the_topic_and_survive_restarts, catalogue_fixture_reset),
    cmocka_unit_test_setup(an_attribute_that_leaves_comes_back_absent, catalogue_fixture_reset),
    cmocka_unit_test_setup(wrong_values_are_dead_letters_and_lose_nothing_beside_them, catalogue_fixture_reset),
  };

  log_set_level(LOG_LEVEL_ERROR);
  return SIDE_BY_SIDE(tests, catalogue_fixture_make_folder, catalogue_fixture_remove_folder);
}
