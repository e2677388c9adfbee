/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: the class of each code, the message of a failure, and the macros. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"

static const struct {
  err_code_t code;
  enum err_class class_;
} expected[] = {
  { ERR_OK, ERR_CLASS_NONE },
  { ERR_MEMORY, ERR_CLASS_FATAL },
  { ERR_SYSTEM, ERR_CLASS_FATAL },
  { ERR_CONFIG, ERR_CLASS_FATAL },
  { ERR_MODEL, ERR_CLASS_FATAL },
  { ERR_STORE, ERR_CLASS_FATAL },
  { ERR_STORE_FULL, ERR_CLASS_RETRY },
  { ERR_STORE_IN_USE, ERR_CLASS_FATAL },
  { ERR_STORE_CORRUPT, ERR_CLASS_FATAL },
  { ERR_FULL, ERR_CLASS_FATAL },
  { ERR_DEVICE, ERR_CLASS_FATAL },
  { ERR_DISCONTINUITY, ERR_CLASS_FATAL },
  { ERR_KAFKA, ERR_CLASS_FATAL },
  { ERR_KAFKA_RETRY, ERR_CLASS_RETRY },
  { ERR_KAFKA_TOPIC, ERR_CLASS_RETRY },
  { ERR_KAFKA_DENIED, ERR_CLASS_RETRY },
  { ERR_KAFKA_DAMAGED, ERR_CLASS_RETRY },
  { ERR_REGISTRY, ERR_CLASS_RETRY },
  { ERR_STOPPING, ERR_CLASS_FATAL },
  { ERR_WIRE, ERR_CLASS_REJECT },
  { ERR_ITEM, ERR_CLASS_REJECT },
  { ERR_QUERY, ERR_CLASS_REJECT },
  { ERR_TOO_LARGE, ERR_CLASS_REJECT },
  { ERR_SPACE, ERR_CLASS_REJECT },
  { ERR_METHOD, ERR_CLASS_REJECT },
  { ERR_SPACE_CHANGED, ERR_CLASS_RETRY },
  { ERR_USAGE, ERR_CLASS_REJECT },
};

static void every_code_has_its_class_and_a_text_of_its_own(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    assert_int_equal(expected[i].code, i);
    assert_int_equal(err_class(expected[i].code), expected[i].class_);
    assert_true(strlen(err_text(expected[i].code)) > 0);
    for (size_t j = 0; j < i; j++)
      assert_string_not_equal(err_text(expected[i].code), err_text(expected[j].code));
  }
}

static err_t fail_at(int *line)
{
  *line = __LINE__ + 1;
  FAIL(ERR_ITEM, "item %d of %s", 7, "books");
}

static err_t wrap(void)
{
  FAIL(ERR_MODEL, "because: %s", err_message());
}

static void a_failure_keeps_its_message_and_its_origin(void **state)
{
  int line;
  char origin[128];

  (void)state;
  assert_int_equal(fail_at(&line), ERR_ITEM);
  assert_string_equal(err_message(), "item 7 of books");
  snprintf(origin, sizeof origin, "%s:%d", __FILE__, line);
  assert_string_equal(err_origin(), origin);
}

static void a_new_message_may_quote_the_old_one(void **state)
{
  int line;

  (void)state;
  assert_int_equal(fail_at(&line), ERR_ITEM);
  assert_int_equal(wrap(), ERR_MODEL);
  assert_string_equal(err_message(), "because: item 7 of books");
}

static void a_long_message_is_cut_and_terminated(void **state)
{
  char text[5000];

  (void)state;
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  assert_int_equal(err_set(ERR_ITEM, text, 1, "%s", text), ERR_ITEM);
  assert_int_equal(strlen(err_message()), 1023);
  assert_memory_equal(err_message(), text, 1023);
  assert_int_equal(strlen(err_origin()), 127);
}

static err_t count_calls(int *n, err_code_t result)
{
  (*n)++;
  if (result != ERR_OK)
    FAIL(result, "call %d", *n);
  return ERR_OK;
}

static err_t try_three(int *n)
{
  TRY(count_calls(n, ERR_OK));
  TRY(count_calls(n, ERR_QUERY));
  TRY(count_calls(n, ERR_ITEM));
  return ERR_OK;
}

static void try_returns_the_first_failure_and_calls_once(void **state)
{
  int n = 0;

  (void)state;
  assert_int_equal(try_three(&n), ERR_QUERY);
  assert_int_equal(n, 2);
  assert_string_equal(err_message(), "call 2");
}

static char closed[8];

static void note_closed(const char *name)
{
  closed[strlen(closed)] = *name; /* the other bytes are zero */
}

static void close_name(const char **name)
{
  note_closed(*name);
}

static err_t open_two_and_fail(void)
{
  AUTO(close_name) const char *first = "a";
  AUTO(close_name) const char *second = "b";

  (void)first;
  (void)second;
  FAIL(ERR_SYSTEM, "no third");
}

static void what_was_opened_is_closed_backwards_on_failure(void **state)
{
  (void)state;
  closed[0] = '\0';
  assert_int_equal(open_two_and_fail(), ERR_SYSTEM);
  assert_string_equal(closed, "ba");
}

static void *fail_elsewhere(void *context)
{
  int line;

  (void)context;
  return fail_at(&line) == ERR_ITEM ? NULL : "no error";
}

static void a_failure_of_another_thread_is_not_ours(void **state)
{
  pthread_t thread;
  void *result;

  (void)state;
  assert_int_equal(err_set(ERR_USAGE, "here", 1, "ours"), ERR_USAGE);
  assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
  pthread_join(thread, &result);
  assert_null(result);
  assert_string_equal(err_message(), "ours");
  assert_string_equal(err_origin(), "here:1");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_code_has_its_class_and_a_text_of_its_own),
    cmocka_unit_test(a_failure_keeps_its_message_and_its_origin),
    cmocka_unit_test(a_new_message_may_quote_the_old_one),
    cmocka_unit_test(a_long_message_is_cut_and_terminated),
    cmocka_unit_test(try_returns_the_first_failure_and_calls_once),
    cmocka_unit_test(what_was_opened_is_closed_backwards_on_failure),
    cmocka_unit_test(a_failure_of_another_thread_is_not_ours),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
