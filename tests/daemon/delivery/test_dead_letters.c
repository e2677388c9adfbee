/* SPDX-License-Identifier: Apache-2.0 */
/* How many dead letters are on their way, how each ends, and who still waits for it. Clock and outlet are made-up
 * ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <poll.h>

#include "base/clock.h"
#include "daemon/delivery/dead_letters.h"
#include "tests/support/assert_ok.h"
#include "tests/support/log_watch.h"

/* As in dead_letters.c. */
enum { LETTERS_MAX = 10000, BYTES_MAX = 64 << 20, LOG_AFTER_S = 10, TICKET_TIMEOUT_S = 60 };

static int64_t now_ns;

/* The linker gives this name. NOLINTBEGIN(bugprone-reserved-identifier) */
int64_t __wrap_clock_now_ns(void);

int64_t __wrap_clock_now_ns(void)
{
  return now_ns;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- The outlet ---- */

/* The newest message that was sent. Its bytes are the caller's, which the outlet does not read. */
struct sent {
  struct outlet_item *item;
  bool has_key, has_value, is_later;
  size_t n_headers;
  char headers[SENDER_HEADERS_MAX][100]; /* name=value */
};

struct outlet {
  struct outlet_config with;
  struct kafka_layers layers;
  bool is_full;
  struct outlet_item *open; /* the newest first */
  struct sent newest;
};

static struct outlet outlet;

err_t outlet_open(const struct outlet_config *config, struct outlet **out)
{
  outlet = (struct outlet){ .with = *config, .layers = *config->layers };
  *out = &outlet;
  return ERR_OK;
}

static void end_item(struct outlet_item *item, enum outlet_end how, const char *reason,
                     const struct sender_message *message)
{
  struct outlet_item **link = &outlet.open;

  while (*link != item)
    link = &(*link)->next;
  *link = item->next;
  outlet.with.ended(outlet.with.context, item, how, reason, message);
}

void outlet_close(struct outlet **o)
{
  while (outlet.open)
    end_item(outlet.open, OUTLET_CLOSED, NULL, NULL);
  *o = NULL;
}

static void keep(struct outlet *o, struct outlet_item *item, const struct sender_message *message, bool is_later)
{
  item->next = o->open;
  o->open = item;
  o->newest = (struct sent){ item, message->has_key, message->has_value, is_later, message->n_headers, { { 0 } } };
  assert_true(message->n_headers <= SENDER_HEADERS_MAX);
  for (size_t i = 0; i < message->n_headers; i++) {
    const struct sender_header *h = &message->headers[i];
    snprintf(o->newest.headers[i], sizeof o->newest.headers[i], "%s=%.*s", h->name, (int)h->value.n,
             (const char *)h->value.p);
  }
}

bool outlet_send(struct outlet *o, struct outlet_item *item, const struct sender_message *message)
{
  if (o->is_full)
    return false;
  keep(o, item, message, false);
  return true;
}

void outlet_send_later(struct outlet *o, struct outlet_item *item, const struct sender_message *message)
{
  keep(o, item, message, true);
}

static bool has_header(const char *text)
{
  for (size_t i = 0; i < outlet.newest.n_headers; i++) {
    if (strcmp(outlet.newest.headers[i], text) == 0)
      return true;
  }
  return false;
}

/* ---- Letters ---- */

static struct counters counters;
static struct offset_tracker *tracker;
static struct alarm alarms;
static struct dead_letters *letters;

static int begin(void **state)
{
  static struct kafka_layers layers;

  (void)state;
  now_ns = 1000 * CLOCK_NS_PER_S;
  memset(&counters, 0, sizeof counters);
  assert_ok(alarm_init(&alarms));
  assert_ok(offset_tracker_open(&tracker));
  const struct dead_letters_config config = { &layers, &counters, tracker, &alarms };
  assert_ok(dead_letters_open(&config, &letters));
  return 0;
}

static int end(void **state)
{
  (void)state;
  dead_letters_close(&letters);
  offset_tracker_close(&tracker);
  alarm_fini(&alarms);
  log_set_level(LOG_LEVEL_INFO);
  return 0;
}

static struct dead_letter letter_of_bytes(size_t n_bytes)
{
  static const uint8_t nothing;

  return (struct dead_letter){
    .topic = "letters",
    .has_key = true,
    .key = span_of_str("key"),
    .has_value = true,
    .value = span_of(&nothing, n_bytes),
    .source_topic = "items",
    .partition = 3,
    .offset = 7,
    .reason = "unusable",
  };
}

/* Send a small letter. Returns its item; NULL: it was not accepted. */
static struct outlet_item *send_small(void)
{
  const struct dead_letter letter = letter_of_bytes(1);

  return dead_letters_send(letters, &letter) ? outlet.newest.item : NULL;
}

static struct outlet_item *send_for_catalogue(_Atomic bool *is_settled)
{
  struct dead_letter letter = letter_of_bytes(1);

  letter.waiter = DEAD_LETTER_WAITER_CATALOGUE;
  letter.is_settled = is_settled;
  assert_true(dead_letters_send(letters, &letter));
  return outlet.newest.item;
}

/* A query that waits for its letter. Returns the letter's item. */
static struct outlet_item *send_for_query(void)
{
  static int64_t offset;
  struct dead_letter letter = letter_of_bytes(1);

  letter.waiter = DEAD_LETTER_WAITER_QUERY;
  assert_ok(offset_tracker_begin(tracker, 0, offset++, &letter.ticket, NULL));
  assert_true(dead_letters_send(letters, &letter));
  return outlet.newest.item;
}

static void finish(struct outlet_item *item, enum outlet_end how)
{
  const struct sender_message nothing = { .topic = "letters" };

  end_item(item, how, "refused", &nothing);
}

static void pass_time(int64_t s)
{
  now_ns += s * CLOCK_NS_PER_S;
  outlet.with.ticked(outlet.with.context, &outlet);
}

static bool has_alarm(void)
{
  struct pollfd fd = { .fd = alarms.fd, .events = POLLIN };

  return poll(&fd, 1, 0) == 1;
}

/* ---- How many ---- */

static void the_number_of_letters_on_their_way_is_bounded(void **state)
{
  static struct outlet_item *items[LETTERS_MAX];

  (void)state;
  log_set_level(LOG_LEVEL_ERROR); /* each is logged */
  for (size_t i = 0; i < LETTERS_MAX; i++) {
    items[i] = send_small();
    assert_non_null(items[i]);
  }
  assert_null(send_small());
  assert_int_equal(dead_letters_n_open(letters), LETTERS_MAX);
  finish(items[LETTERS_MAX / 2], OUTLET_DELIVERED);
  items[LETTERS_MAX / 2] = send_small();
  assert_non_null(items[LETTERS_MAX / 2]);
  assert_null(send_small());
  for (size_t i = LETTERS_MAX; i-- > 0;)
    finish(items[i], OUTLET_DELIVERED);
  assert_int_equal(dead_letters_n_open(letters), 0);
}

static void the_bytes_of_letters_on_their_way_are_bounded(void **state)
{
  const struct dead_letter mebibyte = letter_of_bytes(1 << 20);
  struct outlet_item *first = NULL;
  size_t n = 0;

  (void)state;
  for (; n <= BYTES_MAX >> 20 && dead_letters_send(letters, &mebibyte); n++)
    first = first ? first : outlet.newest.item;
  assert_int_equal(n, (BYTES_MAX >> 20) - 1); /* each has some bytes more */
  finish(first, OUTLET_DELIVERED);
  assert_true(dead_letters_send(letters, &mebibyte));
  assert_false(dead_letters_send(letters, &mebibyte));
}

/* Else it could never be sent. */
static void a_letter_of_any_size_is_accepted_alone(void **state)
{
  const struct dead_letter large = letter_of_bytes(BYTES_MAX + 1);

  (void)state;
  assert_true(dead_letters_send(letters, &large));
  assert_null(send_small());
  finish(outlet.newest.item, OUTLET_DELIVERED);
  assert_non_null(send_small());
  assert_false(dead_letters_send(letters, &large));
}

static void a_letter_that_the_outlet_has_no_room_for_leaves_nothing_behind(void **state)
{
  const struct dead_letter large = letter_of_bytes(BYTES_MAX - (1 << 20));

  (void)state;
  struct outlet_item *older = send_small();
  outlet.is_full = true;
  assert_false(dead_letters_send(letters, &large));
  outlet.is_full = false;
  assert_true(dead_letters_send(letters, &large));
  struct outlet_item *newer = outlet.newest.item;
  assert_int_equal(dead_letters_n_open(letters), 2);
  assert_int_equal(counters_sum(counters.dead_letters, COUNTERS_LETTERS), 2);
  finish(newer, OUTLET_DELIVERED);
  finish(older, OUTLET_DELIVERED);
  assert_int_equal(dead_letters_n_open(letters), 0);
}

/* ---- What is sent ---- */

/* With it, a letter that is refused would be fatal to the producer. */
static void the_producer_is_not_idempotent_whatever_the_configuration_says(void **state)
{
  const struct kafka_layers *layers = &outlet.layers;

  (void)state;
  const struct kafka_property *last = layers->layer[layers->n - 1].items;
  assert_int_equal(layers->layer[layers->n - 1].n, 1);
  assert_string_equal(last->name, "enable.idempotence");
  assert_string_equal(last->value, "false");
}

static void the_headers_say_where_the_record_was_and_what_it_had(void **state)
{
  struct dead_letter letter = letter_of_bytes(1);

  (void)state;
  assert_true(dead_letters_send(letters, &letter));
  assert_int_equal(outlet.newest.n_headers, 4);
  assert_true(has_header("sluice.topic=items") && has_header("sluice.partition=3"));
  assert_true(has_header("sluice.offset=7") && has_header("sluice.reason=unusable"));
  letter.content_type = span_of_str("application/json");
  letter.retried = span_of_str("123456789");
  assert_true(dead_letters_send(letters, &letter));
  assert_int_equal(outlet.newest.n_headers, 6);
  assert_true(has_header("content-type=application/json") && has_header("sluice.retried=123456789"));
  letter.retried = span_of_str("1234567890"); /* nobody has written that */
  assert_true(dead_letters_send(letters, &letter));
  assert_int_equal(outlet.newest.n_headers, 5);
}

/* It may be too large for the topic. */
static void a_refused_letter_is_sent_again_without_key_and_value(void **state)
{
  const struct sender_header headers[] = { { "sluice.topic", span_of_str("items") } };
  const struct sender_message refused = {
    .topic = "letters", .has_key = true, .has_value = true, .headers = headers, .n_headers = 1
  };
  _Atomic bool is_settled = false;

  (void)state;
  struct outlet_item *item = send_for_catalogue(&is_settled);
  item->is_alone = true;
  item->n_unsure = 1;
  end_item(item, OUTLET_REFUSED, "too large", &refused);
  assert_false(is_settled);
  assert_ptr_equal(outlet.newest.item, item);
  assert_true(outlet.newest.is_later && !outlet.newest.has_key && !outlet.newest.has_value);
  assert_int_equal(outlet.newest.n_headers, 2);
  assert_true(has_header("sluice.topic=items") && has_header("sluice.left-out=too large"));
  assert_true(!item->is_alone && item->n_unsure == 0); /* it is another message */
  outlet.newest.item = NULL;
  finish(item, OUTLET_REFUSED);
  assert_null(outlet.newest.item);
  assert_true(is_settled); /* no broker can ever accept it */
  assert_int_equal(counters_get(&counters.undeliverable), 1);
  assert_int_equal(dead_letters_n_open(letters), 0);
}

/* ---- Who waits ---- */

static void a_delivered_letter_is_settled(void **state)
{
  _Atomic bool is_settled = false;

  (void)state;
  struct outlet_item *item = send_for_catalogue(&is_settled);
  struct outlet_item *of_query = send_for_query();
  finish(item, OUTLET_DELIVERED);
  assert_true(is_settled);
  assert_int_equal(offset_tracker_n_open(tracker), 1);
  finish(of_query, OUTLET_DELIVERED);
  assert_int_equal(offset_tracker_n_open(tracker), 0);
}

/* The record is handled again after a restart. */
static void a_letter_that_is_not_sent_before_the_end_is_not_settled(void **state)
{
  static const enum outlet_end ends[] = { OUTLET_CLOSED, OUTLET_LOST };
  _Atomic bool is_settled = false;

  (void)state;
  for (size_t i = 0; i < 2; i++) {
    finish(send_for_catalogue(&is_settled), ends[i]);
    finish(send_for_query(), ends[i]);
    assert_int_equal(has_alarm(), ends[i] == OUTLET_LOST);
  }
  assert_false(is_settled);
  assert_int_equal(offset_tracker_n_open(tracker), 2);
  assert_int_equal(dead_letters_n_open(letters), 0);
  assert_int_equal(counters_get(&counters.undeliverable), 0);
}

/* The catalogue waits for as long as it takes. */
static void a_query_waits_for_a_minute(void **state)
{
  _Atomic bool is_settled = false;

  (void)state;
  struct outlet_item *of_catalogue = send_for_catalogue(&is_settled);
  struct outlet_item *between = send_small();
  struct outlet_item *of_query = send_for_query();
  finish(between, OUTLET_DELIVERED);
  pass_time(TICKET_TIMEOUT_S - 1);
  send_for_query();
  assert_int_equal(offset_tracker_n_open(tracker), 2);
  pass_time(1);
  assert_int_equal(offset_tracker_n_open(tracker), 1);
  assert_int_equal(dead_letters_n_open(letters), 3); /* all are still sent */
  struct outlet_item *next = send_for_query();       /* it has the ticket that has ended */
  pass_time(1);
  finish(of_query, OUTLET_DELIVERED);
  assert_int_equal(offset_tracker_n_open(tracker), 2);
  assert_false(is_settled);
  finish(of_catalogue, OUTLET_DELIVERED);
  assert_true(is_settled);
  finish(next, OUTLET_DELIVERED);
  assert_int_equal(offset_tracker_n_open(tracker), 1);
}

static void letters_that_wait_for_long_are_logged_once(void **state)
{
  static const char *const words = "event=dead_letters_waiting letters=1";

  (void)state;
  for (size_t round = 1; round <= 2; round++) {
    struct outlet_item *item = send_small();
    pass_time(LOG_AFTER_S);
    assert_int_equal(log_watch_count(words), round - 1);
    pass_time(1);
    assert_int_equal(log_watch_count(words), round);
    pass_time(1);
    assert_int_equal(log_watch_count(words), round);
    assert_int_equal(counters_get(&counters.dead_letters_waiting), 1);
    finish(item, OUTLET_DELIVERED);
    pass_time(1);
    assert_int_equal(counters_get(&counters.dead_letters_waiting), 0);
  }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(the_number_of_letters_on_their_way_is_bounded),
    TEST(the_bytes_of_letters_on_their_way_are_bounded),
    TEST(a_letter_of_any_size_is_accepted_alone),
    TEST(a_letter_that_the_outlet_has_no_room_for_leaves_nothing_behind),
    TEST(the_producer_is_not_idempotent_whatever_the_configuration_says),
    TEST(the_headers_say_where_the_record_was_and_what_it_had),
    TEST(a_refused_letter_is_sent_again_without_key_and_value),
    TEST(a_delivered_letter_is_settled),
    TEST(a_letter_that_is_not_sent_before_the_end_is_not_settled),
    TEST(a_query_waits_for_a_minute),
    TEST(letters_that_wait_for_long_are_logged_once),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
