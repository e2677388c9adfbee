/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the header traceparent: values that are valid, and many that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/tracing/traceparent.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"
#define ZEROS "00000000000000000000000000000000"

/* A copy of exact size lets the sanitizer see a read behind the end. */
static bool parses(const char *text, size_t n, struct traceparent *out)
{
  uint8_t *copy = malloc(n ? n : 1);

  assert_non_null(copy);
  memcpy(copy, text, n);
  bool is_valid = traceparent_parse(span_of(copy, n), out);
  free(copy);
  return is_valid;
}

static void the_ids_and_the_sampled_flag_are_read(void **state)
{
  static const char flags[] = "0123456789abcdef";
  struct traceparent parent;

  (void)state;
  for (size_t i = 0; i < 16; i++) {
    char text[] = "00-" TRACE "-" SPAN "-00";
    text[sizeof text - 2] = flags[i];
    assert_true(parses(text, sizeof text - 1, &parent));
    assert_string_equal(parent.trace_id, TRACE);
    assert_string_equal(parent.span_id, SPAN);
    assert_int_equal(parent.is_sampled, i & 1);
  }
  assert_true(parses("00-" TRACE "-" SPAN "-10", 55, &parent));
  assert_false(parent.is_sampled); /* bit 4 */
}

static void later_versions_may_have_more_fields(void **state)
{
  static const char *const good[] = { "01-" TRACE "-" SPAN "-01", "01-" TRACE "-" SPAN "-01-",
                                      "cc-" TRACE "-" SPAN "-01-x y", "fe-" TRACE "-" SPAN "-03-00" };
  struct traceparent parent;

  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_true(parses(good[i], strlen(good[i]), &parent));
    assert_true(parent.is_sampled);
  }
}

static void what_is_not_valid_is_refused(void **state)
{
  static const char *const bad[] = {
    "",
    "00",
    "ff-" TRACE "-" SPAN "-01",
    "0F-" TRACE "-" SPAN "-01",
    "0g-" TRACE "-" SPAN "-01",
    "00-" TRACE "-" SPAN "-01-",
    "00-" TRACE "-" SPAN "-01-00",
    "00-" TRACE "-" SPAN "-010",
    "01-" TRACE "-" SPAN "-010",
    "00-" TRACE "-" SPAN "-0",
    "00-" TRACE "-" SPAN "-0x",
    "00-" TRACE "-" SPAN "-0A",
    "00-0AF7651916cd43dd8448eb211c80319c-" SPAN "-01",
    "00-" TRACE "-B7ad6b7169203331-01",
    "00-" ZEROS "-" SPAN "-01",
    "00-" TRACE "-0000000000000000-01",
    "00_" TRACE "-" SPAN "-01",
    "00-" TRACE "_" SPAN "-01",
    "00-" TRACE "-" SPAN "_01",
    "00-" TRACE SPAN "--01",
    " 0-" TRACE "-" SPAN "-01",
  };
  struct traceparent parent;

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    if (parses(bad[i], strlen(bad[i]), &parent))
      fail_msg("`%s` is accepted", bad[i]);
  }
}

static void every_prefix_and_every_other_byte_is_refused(void **state)
{
  static const char good[] = "00-" TRACE "-" SPAN "-01";
  static const char others[] = { 'G', 'A', '/', ':', '`', '\0', (char)0xff };
  struct traceparent parent;

  (void)state;
  for (size_t n = 0; n < sizeof good - 1; n++)
    assert_false(parses(good, n, &parent));
  for (size_t i = 0; i < sizeof good - 1; i++) {
    for (size_t j = 0; j < sizeof others; j++) {
      char text[sizeof good];
      memcpy(text, good, sizeof good);
      text[i] = others[j];
      assert_false(parses(text, sizeof good - 1, &parent));
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_ids_and_the_sampled_flag_are_read),
    cmocka_unit_test(later_versions_may_have_more_fields),
    cmocka_unit_test(what_is_not_valid_is_refused),
    cmocka_unit_test(every_prefix_and_every_other_byte_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
