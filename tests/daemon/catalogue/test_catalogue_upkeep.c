/* SPDX-License-Identifier: Apache-2.0 */
/* When the catalogue thread says that tombstones may have been removed before they were read. How long reading took is
 * made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/catalogue/catalogue_state.h"
#include "tests/support/assert_ok.h"
#include "tests/support/log_watch.h"
#include "tests/support/temp_dir.h"

static struct store *store;
static struct temp_dir dir;

static int open_store(void **state)
{
  (void)state;
  temp_dir_init(&dir);
  return store_open(dir.path, &store) != ERR_OK;
}

static int close_store(void **state)
{
  (void)state;
  store_close(&store);
  temp_dir_fini(&dir);
  return 0;
}

/* Reading to the end of a topic, which keeps tombstones for kept_s (0: for ever), took read_s. Returns how often that
 * is said, however often the thread looks. */
static size_t count_said(int64_t read_s, int64_t kept_s)
{
  static const struct config config;
  size_t n_before = log_watch_count("event=catalogue_read_slowly");
  struct catalogue c = {
    .with = { .config = &config, .store = store },
    .topic.positions.longest_read_ns = read_s * CLOCK_NS_PER_S,
    .reading.tombstone_retention_ns = kept_s * CLOCK_NS_PER_S,
    .upkeep = { INT64_MAX, INT64_MAX, INT64_MAX }, /* nothing else is due */
    .phase = CATALOGUE_LIVE,
  };

  assert_ok(catalogue_do_upkeep(&c));
  assert_ok(catalogue_do_upkeep(&c));
  return log_watch_count("event=catalogue_read_slowly") - n_before;
}

static void reading_for_longer_than_tombstones_are_kept_is_said_once(void **state)
{
  (void)state;
  assert_int_equal(count_said(3600, 3599), 1);
  assert_true(log_watch_has("read_s=3600 kept_s=3599"));
  assert_int_equal(count_said(5, 1), 1);
}

static void reading_fast_enough_or_for_no_longer_than_a_batch_takes_is_not_said(void **state)
{
  (void)state;
  assert_int_equal(count_said(3600, 3600), 0);
  assert_int_equal(count_said(3600, 0), 0);
  assert_int_equal(count_said(4, 1), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reading_for_longer_than_tombstones_are_kept_is_said_once),
    cmocka_unit_test(reading_fast_enough_or_for_no_longer_than_a_batch_takes_is_not_said),
  };

  return cmocka_run_group_tests(tests, open_store, close_store);
}
