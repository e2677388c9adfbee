/* SPDX-License-Identifier: Apache-2.0 */
/* When the Kafka client stands back behind searches, and when it comes forward. Clock and client are made-up ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/catalogue/catalogue_state.h"

/* As in catalogue_client.c. */
enum { BACK_MS = 200, FEW_RECORDS = 2000, FRONT_MS = 2000 };

static int64_t now_ns;

int64_t clock_now_ns(void)
{
  return now_ns;
}

struct topic_reader {
  bool stands_back;
};

void topic_reader_stand_back(struct topic_reader *r, bool stands_back)
{
  r->stands_back = stands_back;
}

static struct topic_reader reader;

/* A catalogue whose thread stands back while it polls, and whose records can wait. */
static void open_catalogue(struct catalogue *c)
{
  *c = (struct catalogue){ .topic.reader = &reader, .gather.newest_can_wait = true, .stand_back.has_entered = true };
  reader.stands_back = false;
  now_ns = CLOCK_NS_PER_S;
}

/* Poll: n_records come after so long. Returns whether the client stood back meanwhile. */
static bool poll_once(struct catalogue *c, size_t n_records, int after_ms)
{
  catalogue_relegate_client(c);
  bool stood_back = reader.stands_back;
  now_ns += after_ms * CLOCK_NS_PER_MS;
  catalogue_recall_client(c, n_records);
  return stood_back;
}

static void the_client_stands_back_only_while_the_thread_does(void **state)
{
  struct catalogue c;

  (void)state;
  open_catalogue(&c);
  c.stand_back.has_entered = false;
  assert_false(poll_once(&c, FEW_RECORDS, 1));
  c.stand_back.has_entered = true;
  assert_true(poll_once(&c, FEW_RECORDS, 1));
  assert_true(reader.stands_back); /* also between two polls */
  c.stand_back.has_entered = false;
  assert_false(poll_once(&c, FEW_RECORDS, 1));
}

static void it_comes_forward_after_a_poll_whose_successors_cannot_wait(void **state)
{
  struct catalogue c;

  (void)state;
  open_catalogue(&c);
  assert_true(poll_once(&c, 1, 1));
  c.gather.newest_can_wait = false;
  assert_true(poll_once(&c, 1, 1)); /* the thread had entered before it knew */
  assert_false(reader.stands_back);
}

static void a_client_that_brings_enough_stays_back(void **state)
{
  struct catalogue c;

  (void)state;
  open_catalogue(&c);
  for (int i = 0; i < 20; i++) {
    assert_true(poll_once(&c, FEW_RECORDS / 2, BACK_MS / 2));
    assert_true(reader.stands_back);
  }
}

static void one_that_brings_few_comes_forward_for_ten_times_as_long(void **state)
{
  struct catalogue c;

  (void)state;
  open_catalogue(&c);
  assert_true(poll_once(&c, 0, BACK_MS - 1));
  assert_true(poll_once(&c, FEW_RECORDS - 1, 1));
  for (int i = 0; i < 10; i++)
    assert_false(poll_once(&c, 0, FRONT_MS / 10));
  assert_true(poll_once(&c, 0, 1));
}

static void what_came_in_earlier_times_does_not_count(void **state)
{
  struct catalogue c;

  (void)state;
  open_catalogue(&c);
  assert_true(poll_once(&c, 10 * FEW_RECORDS, BACK_MS));
  assert_true(poll_once(&c, FEW_RECORDS - 1, BACK_MS));
  assert_false(poll_once(&c, 0, 1));
}

static void what_came_while_it_was_in_front_does_not_count(void **state)
{
  struct catalogue c;

  (void)state;
  open_catalogue(&c);
  assert_true(poll_once(&c, FEW_RECORDS, 1));
  c.stand_back.has_entered = false;
  assert_false(poll_once(&c, FEW_RECORDS, 10 * BACK_MS));
  c.stand_back.has_entered = true;
  assert_true(poll_once(&c, 0, BACK_MS - 1)); /* the time begins anew */
  assert_true(poll_once(&c, 0, 1));
  assert_false(poll_once(&c, 0, 1));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_client_stands_back_only_while_the_thread_does),
    cmocka_unit_test(it_comes_forward_after_a_poll_whose_successors_cannot_wait),
    cmocka_unit_test(a_client_that_brings_enough_stays_back),
    cmocka_unit_test(one_that_brings_few_comes_forward_for_ten_times_as_long),
    cmocka_unit_test(what_came_in_earlier_times_does_not_count),
    cmocka_unit_test(what_came_while_it_was_in_front_does_not_count),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
