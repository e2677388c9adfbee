/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: what arrives on standard error, its length, its quoting, and lines of several threads. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/secrets.h"
#include "tests/support/dice.h"

enum { LINE_MAX_BYTES = 2048, THREADS = 4, LINES = 300, CAPTURE_BYTES = 1 << 20 };

static uint64_t seed;
static char captured[CAPTURE_BYTES];
static bool is_journal; /* tell the log that the captured file is the journal's stream */

/* Set JOURNAL_STREAM to device and inode of the stream, as systemd does for a service. */
static void name_journal(int file)
{
  struct stat stream;
  char text[64];

  assert_int_equal(fstat(file, &stream), 0);
  snprintf(text, sizeof text, "%llu:%llu", (unsigned long long)stream.st_dev, (unsigned long long)stream.st_ino);
  setenv("JOURNAL_STREAM", text, 1);
}

/* Send standard error to a file while `work` runs, and read the file into `captured`. */
static void capture(void (*work)(void *), void *context)
{
  int was = dup(STDERR_FILENO);
  char path[] = "/tmp/sluice-test-log-XXXXXX";
  int file = mkstemp(path);

  assert_true(was >= 0 && file >= 0);
  unlink(path);
  fflush(stderr);
  dup2(file, STDERR_FILENO);
  if (is_journal)
    name_journal(STDERR_FILENO);
  work(context);
  unsetenv("JOURNAL_STREAM");
  dup2(was, STDERR_FILENO);
  ssize_t n = pread(file, captured, sizeof captured - 1, 0);
  close(file);
  close(was);
  assert_true(n >= 0);
  captured[n] = '\0';
}

#pragma GCC diagnostic ignored "-Wformat-zero-length" /* events without pairs are tested on purpose */

static void say_all_levels(void *context)
{
  (void)context;
  log_error("e", "");
  log_warn("w", "a=%d", 1);
  log_info("i", "a=%s b=%s", "x", "y");
  log_debug("d", "c=3");
}

static void a_line_has_time_level_event_and_pairs(void **state)
{
  int year, month, day, hour, minute, second, milli, used = 0;

  (void)state;
  setenv("JOURNAL_STREAM", "8:12345", 1); /* inherited from a desktop's service, as in a terminal: not our stream */
  log_set_level(LOG_LEVEL_WARN);
  capture(say_all_levels, NULL);
  int n = sscanf(captured, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ error event=e\n%n", &year, &month, &day, &hour, &minute,
                 &second, &milli, &used);
  assert_int_equal(n, 7);
  assert_true(used > 0 && year >= 2024 && month <= 12 && hour < 24);
  const char *second_line = strchr(captured, '\n') + 1;
  assert_string_equal(second_line + strlen("2024-01-01T00:00:00.000Z "), "warn  event=w a=1\n");
}

static void under_the_journal_a_line_begins_with_its_priority(void **state)
{
  (void)state;
  is_journal = true;
  log_set_level(LOG_LEVEL_DEBUG);
  capture(say_all_levels, NULL);
  is_journal = false;
  assert_string_equal(captured, "<3>event=e\n<4>event=w a=1\n<6>event=i a=x b=y\n<7>event=d c=3\n");
}

static void the_level_is_a_threshold(void **state)
{
  static const size_t n_lines[] = { 1, 2, 3, 4 };

  (void)state;
  for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
    size_t n = 0;
    log_set_level((enum log_level)level);
    capture(say_all_levels, NULL);
    for (const char *p = captured; (p = strchr(p, '\n')); p++)
      n++;
    assert_int_equal(n, n_lines[level]);
  }
}

static void say_long(void *context)
{
  size_t n = *(const size_t *)context;
  char *text = malloc(n + 1);

  memset(text, 'x', n);
  text[n] = '\0';
  log_debug("long", "text=%s", text); /* lines that are cut to the same text would be limited */
  free(text);
}

/* Every length around the size of the buffer. */
static void a_line_too_long_is_cut_and_stays_one_line(void **state)
{
  static const char start[] = "<7>event=long text=";

  (void)state;
  is_journal = true;
  log_set_level(LOG_LEVEL_DEBUG);
  for (size_t n = LINE_MAX_BYTES - 40; n < LINE_MAX_BYTES + 40; n++) {
    size_t whole = strlen(start) + n + 1;
    capture(say_long, &n);
    size_t length = strlen(captured);
    assert_memory_equal(captured, start, strlen(start));
    assert_ptr_equal(strchr(captured, '\n'), captured + length - 1);
    assert_true(length <= LINE_MAX_BYTES);
    assert_int_equal(strspn(captured + strlen(start), "x"), length - strlen(start) - 1);
    if (whole < LINE_MAX_BYTES)
      assert_int_equal(length, whole);
  }
  is_journal = false;
}

static void *say_many(void *context)
{
  char text[200];

  memset(text, 'a' + (int)(intptr_t)context, sizeof text - 1);
  text[sizeof text - 1] = '\0';
  for (int i = 0; i < LINES; i++)
    log_info("t", "%s %d", text, i); /* errors, and lines that are the same, would be limited */
  return NULL;
}

static void say_from_threads(void *context)
{
  pthread_t threads[THREADS];

  (void)context;
  for (intptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, say_many, (void *)i), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
}

static void lines_of_threads_never_mix(void **state)
{
  size_t n = 0;

  (void)state;
  is_journal = true;
  capture(say_from_threads, NULL);
  is_journal = false;
  for (char *line = captured; *line; n++) {
    char *end = strchr(line, '\n');
    char letter[2] = { line[strlen("<6>event=t ")], '\0' };
    assert_non_null(end);
    char *number = line + strlen("<6>event=t ") + 199;
    assert_memory_equal(line, "<6>event=t ", strlen("<6>event=t "));
    assert_int_equal(strspn(line + strlen("<6>event=t "), letter), 199);
    assert_int_equal(strspn(number, " 0123456789"), end - number);
    line = end + 1;
  }
  assert_int_equal(n, THREADS * LINES);
}

/* Unquote a text and return its length. Fails the test if the text is not well formed. */
static size_t unquote(const char *quoted, uint8_t *out, bool *is_cut)
{
  size_t length = strlen(quoted), n = 0;

  assert_true(length >= 2 && quoted[0] == '"' && quoted[length - 1] == '"');
  *is_cut = false;
  for (size_t i = 1; i < length - 1; i++) {
    char c = quoted[i];
    assert_true(c >= 0x20 && c <= 0x7e && c != '"');
    if (c == '\\') {
      unsigned value;
      assert_int_equal(sscanf(quoted + i, "\\x%2x", &value), 1);
      out[n++] = (uint8_t)value;
      i += 3;
    } else {
      out[n++] = (uint8_t)c;
    }
  }
  if (length > 490 && n >= 3 && memcmp(out + n - 3, "...", 3) == 0) {
    *is_cut = true;
    n -= 3;
  }
  return n;
}

static void a_quoted_text_says_its_bytes_or_the_first_of_them(void **state)
{
  struct dice dice = { seed };
  uint8_t bytes[1000], back[1000];
  size_t n_cut = 0;

  (void)state;
  for (int round = 0; round < 3000; round++) {
    size_t n = dice_below(&dice, round % 2 ? sizeof bytes : 40);
    bool is_cut, is_plain = dice_below(&dice, 2);
    for (size_t i = 0; i < n; i++)
      bytes[i] = is_plain ? (uint8_t)('a' + dice_below(&dice, 26)) : (uint8_t)dice_u64(&dice);
    const char *quoted = log_quote(span_of(bytes, n));
    size_t n_back = unquote(quoted, back, &is_cut);
    n_cut += is_cut;
    assert_true(strlen(quoted) < 512);
    assert_true(is_cut ? n_back < n && n_back >= 100 : n_back == n);
    if (n_back)
      assert_memory_equal(back, bytes, n_back);
  }
  assert_true(n_cut > 100);
}

static void four_quoted_texts_live_at_once(void **state)
{
  (void)state;
  const char *a = log_quote(span_of_str("a")), *b = log_quote(span_of_str("b\n"));
  const char *c = log_quote(span_of_str("\"")), *d = log_quote((struct span){ 0 });
  assert_string_equal(a, "\"a\"");
  assert_string_equal(b, "\"b\\x0a\"");
  assert_string_equal(c, "\"\\x22\"");
  assert_string_equal(d, "\"\"");
}

static struct log_record taken;
static char taken_pairs[256];

static bool take_errors(const struct log_record *record)
{
  if (record->level != LOG_LEVEL_ERROR)
    return false;
  taken = *record;
  snprintf(taken_pairs, sizeof taken_pairs, "%s", record->pairs);
  return true;
}

static void say_a_secret(void *context)
{
  (void)context;
  log_error("sunk", "reason=%s", "swordfish7");
  log_warn("written", "a=1");
}

static void a_sink_takes_records_without_secrets_and_the_rest_is_written(void **state)
{
  (void)state;
  secrets_add("swordfish7");
  log_set_sink(take_errors);
  is_journal = true;
  capture(say_a_secret, NULL);
  is_journal = false;
  log_set_sink(NULL);
  assert_string_equal(taken.event, "sunk");
  assert_string_equal(taken_pairs, "reason=***");
  assert_string_equal(captured, "<4>event=written a=1\n");
}

static void say_too_often(void *context)
{
  (void)context;
  for (int i = 0; i < 2 * LOG_LIMIT_SAME; i++)
    log_warn("flood", "n=%d reason=same", i);
  log_write_repeats(clock_now_ns());
  log_write_repeats(clock_now_ns() + LOG_LIMIT_WINDOW_S * CLOCK_NS_PER_S);
}

static void a_flood_is_written_up_to_the_limit_and_then_once_with_its_count(void **state)
{
  char last[64];
  size_t n = 0;

  (void)state;
  is_journal = true;
  capture(say_too_often, NULL);
  is_journal = false;
  for (const char *p = captured; (p = strchr(p, '\n')); p++)
    n++;
  assert_int_equal(n, LOG_LIMIT_SAME + 1);
  snprintf(last, sizeof last, "<4>event=flood repeated=%d n=%d reason=same\n", LOG_LIMIT_SAME, 2 * LOG_LIMIT_SAME - 1);
  assert_non_null(strstr(captured, last));
}

static void the_newest_failure_is_quoted(void **state)
{
  (void)state;
  assert_int_equal(err_set(ERR_ITEM, "f", 1, "no \"x\""), ERR_ITEM);
  assert_string_equal(log_failure(), "\"no \\x22x\\x22\"");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_line_has_time_level_event_and_pairs),
    cmocka_unit_test(under_the_journal_a_line_begins_with_its_priority),
    cmocka_unit_test(the_level_is_a_threshold),
    cmocka_unit_test(a_line_too_long_is_cut_and_stays_one_line),
    cmocka_unit_test(lines_of_threads_never_mix),
    cmocka_unit_test(a_quoted_text_says_its_bytes_or_the_first_of_them),
    cmocka_unit_test(four_quoted_texts_live_at_once),
    cmocka_unit_test(a_sink_takes_records_without_secrets_and_the_rest_is_written),
    cmocka_unit_test(a_flood_is_written_up_to_the_limit_and_then_once_with_its_count),
    cmocka_unit_test(the_newest_failure_is_quoted),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
