/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of journal entries: their names and values, and records that find no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/journal/journal_events.h"
#include "daemon/journal/journal_fields.h"

static struct journal_fields fields;

static void make(enum log_level level, const char *event, const char *pairs)
{
  memset(&fields, 0xee, sizeof fields);
  journal_fields_make(&(struct log_record){ level, event, pairs }, &fields);
}

static bool has(const char *wanted)
{
  for (int i = 0; i < fields.n; i++) {
    if (fields.field[i].iov_len == strlen(wanted) && memcmp(fields.field[i].iov_base, wanted, strlen(wanted)) == 0)
      return true;
  }
  return false;
}

static void an_event_with_a_row_has_a_sentence_an_id_and_its_pairs(void **state)
{
  char id[64];

  (void)state;
  make(LOG_LEVEL_WARN, "dead_letter", "topic=items partition=3 reason=\"too short\"");
  assert_true(has("MESSAGE=A record cannot be used: topic=items partition=3 reason=\"too short\""));
  snprintf(id, sizeof id, "MESSAGE_ID=%s", journal_events_find("dead_letter")->message_id);
  assert_true(has(id));
  assert_true(has("PRIORITY=4"));
  assert_true(has("SYSLOG_IDENTIFIER=sluiced"));
  assert_true(has("SLUICE_EVENT=dead_letter"));
  assert_true(has("SLUICE_TOPIC=items"));
  assert_true(has("SLUICE_PARTITION=3"));
  assert_true(has("SLUICE_REASON=too short"));
  assert_int_equal(fields.n, 8);
}

static void without_pairs_the_message_is_the_sentence(void **state)
{
  (void)state;
  make(LOG_LEVEL_INFO, "seen_caught_up", "");
  assert_true(has("MESSAGE=The seen topic has been read"));
  assert_true(has("PRIORITY=6"));
}

static void an_event_without_a_row_is_the_line_as_elsewhere(void **state)
{
  (void)state;
  assert_null(journal_events_find("partition"));
  make(LOG_LEVEL_INFO, "partition", "from=1 end=2");
  assert_true(has("MESSAGE=event=partition from=1 end=2"));
  assert_true(has("SLUICE_FROM=1"));
  assert_int_equal(fields.n, 6);
}

static void a_value_has_its_bytes_and_a_key_only_letters_that_the_journal_allows(void **state)
{
  (void)state;
  make(LOG_LEVEL_ERROR, "reply_not_written", "id=\"a\\x0a\\xc3\\xa4\" odd-key9=x");
  assert_true(has("SLUICE_ID=a\n\xc3\xa4"));
  assert_true(has("SLUICE_ODD_KEY9=x"));
}

static void what_finds_no_room_is_left_out(void **state)
{
  char pairs[2 * JOURNAL_TEXT_BYTES], *end = pairs;

  (void)state;
  for (int i = 0; i < 2 * JOURNAL_FIELDS_MAX; i++)
    end += snprintf(end, 32, "k%d=%d ", i, i);
  make(LOG_LEVEL_INFO, "started", pairs);
  assert_int_equal(fields.n, JOURNAL_FIELDS_MAX);
  assert_true(has("SLUICE_K0=0"));
  memset(pairs, 'x', sizeof pairs);
  memcpy(pairs, "a=1 b=", 6);
  memcpy(pairs + sizeof pairs - 5, " c=2", 5);
  make(LOG_LEVEL_INFO, "started", pairs);
  assert_true(has("SLUICE_EVENT=started"));
  assert_true(has("SLUICE_A=1"));
  assert_true(has("SLUICE_C=2"));
  assert_true(fields.n_text <= sizeof fields.text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_event_with_a_row_has_a_sentence_an_id_and_its_pairs),
    cmocka_unit_test(without_pairs_the_message_is_the_sentence),
    cmocka_unit_test(an_event_without_a_row_is_the_line_as_elsewhere),
    cmocka_unit_test(a_value_has_its_bytes_and_a_key_only_letters_that_the_journal_allows),
    cmocka_unit_test(what_finds_no_room_is_left_out),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
