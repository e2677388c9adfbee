/* SPDX-License-Identifier: Apache-2.0 */
/* Which boosts are refused and why, and what an age counts. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/boosts/decay.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

/* ---- What is refused ---- */

static void assert_refused(const struct engine *engine, struct boost boost, const char *reason)
{
  const float one = 1;
  struct boost boosts[] = { { .weight = 1, .attribute = span_of_str("price") }, boost };
  struct query query = { .space = span_of_str("dot"), .k = 1, .vector = { &one, 1 }, .boosts = boosts, .n_boosts = 2 };
  struct region region = { 0 };
  struct method method;
  size_t space;

  err_code_t err = engine_check_query(engine, &query, &space, &method);
  if (err == ERR_OK)
    err = engine_check_filter(engine, &query, &region);
  assert_int_equal(err, ERR_QUERY);
  assert_string_equal(err_message(), reason);
  region_fini(&region);
}

static void boosts_that_make_no_sense_are_refused(void **state)
{
  struct temp_dir dir;
  char path[PATH_MAX];
  struct engine *engine;
  struct engine_space space = { .name = "dot", .model_path = path };
  struct engine_config config = { .spaces = &space, .n_spaces = 1, .max_items = 1, .max_k = 1, .max_batch = 1 };

  (void)state;
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/dot.safetensors", dir.path);
  vector_file_write_plain(path, "dot", 1);
  config.isa = isa_detect();
  config.attributes = filter_attributes();
  assert_ok(engine_open(&config, &engine));
  assert_refused(engine, (struct boost){ .attribute = span_of_str("prize") },
                 "boosts[1].attribute: \"prize\" is not an attribute; the nearest is 'price'");
  assert_refused(engine, (struct boost){ .attribute = span_of_str("country") },
                 "boosts[1].attribute: 'country' is of type keyword; it must be of type integer, number or time. A filter "
                 "can compare it");
  assert_refused(engine, (struct boost){ .attribute = span_of_str("expires") },
                 "boosts[1].half_life_ms is missing: 'expires' is a time, and its age counts");
  assert_refused(engine, (struct boost){ .attribute = span_of_str("year"), .half_life_ms = 1 },
                 "boosts[1].half_life_ms: 'year' is of type integer; only a time has an age");
  assert_refused(engine, (struct boost){ .filter = span_of_str("year = 1"), .half_life_ms = 1 },
                 "boosts[1].half_life_ms: a filter has no age");
  assert_refused(engine, (struct boost){ .filter = span_of_str("year = 'x'") },
                 "boosts[1].filter: at character 8: year is an integer, and 'x' is text");
  engine_close(&engine);
  temp_dir_fini(&dir);
}

/* ---- Ages ---- */

static void decay_halves_once_in_a_half_life(void **state)
{
  struct dice dice = { dice_seed() };

  (void)state;
  for (int n = 0; n <= 1100; n++)
    assert_true(decay(n) == ldexp(1.0, n < DECAY_MAX ? -n : -5000));
  for (int i = 0; i < 1000000; i++) {
    double x = ldexp((double)(dice_u64(&dice) >> 11) * 0x1p-53, (int)dice_below(&dice, 30) - 20);
    double expected = exp2(-x);
    assert_true(fabs(decay(x) - expected) <= 2 * DBL_EPSILON * expected + 0x1p-1074);
  }
  assert_true(decay(1e300) == 0.0 && decay(INFINITY) == 0.0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(boosts_that_make_no_sense_are_refused),
    cmocka_unit_test(decay_halves_once_in_a_half_life),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
