/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what sluicectl does without a daemon: formatted numbers, lines of a catalogue file, queries and answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/ctl/query/ctl_answer.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/writer/ctl_item_line.h"
#include "daemon/ctl/writer/ctl_positions.h"
#include "daemon/ctl/text/ctl_progress.h"
#include "daemon/ctl/query/ctl_queries.h"
#include "daemon/catalogue/catalogue_rebuild.h"
#include "daemon/ctl/status/ctl_rebuild.h"
#include "daemon/ctl/text/ctl_print.h"
#include "daemon/ctl/status/ctl_series.h"
#include "daemon/ctl/ctl_space.h"
#include "ingest/wire/wire.h"
#include "tests/support/dice.h"

#define MS CLOCK_NS_PER_MS
#define S  CLOCK_NS_PER_S

enum { FUZZ_ROUNDS = 20000 };

static void counts_have_commas(void **state)
{
  (void)state;
  assert_string_equal(ctl_format_count(0).s, "0");
  assert_string_equal(ctl_format_count(999).s, "999");
  assert_string_equal(ctl_format_count(1000).s, "1,000");
  assert_string_equal(ctl_format_count(63000).s, "63,000");
  assert_string_equal(ctl_format_count(123456).s, "123,456");
  assert_string_equal(ctl_format_count(UINT64_MAX).s, "18,446,744,073,709,551,615");
}

static void durations_have_two_digits_and_a_fitting_unit(void **state)
{
  const struct {
    int64_t ns;
    const char *text;
  } rows[] = {
    { 0, "0.00 ms" },
    { 250000, "0.25 ms" },
    { 994000, "0.99 ms" },
    { 996000, "1.0 ms" },
    { 9940 * 1000, "9.9 ms" },
    { 9960 * 1000, "10 ms" },
    { 12 * MS, "12 ms" },
    { 999 * MS, "999 ms" },
    { 999600 * 1000, "1.0 s" },
    { 3200 * MS, "3.2 s" },
    { 9960 * MS, "10 s" },
    { 59 * S, "59 s" },
    { 60 * S, "1 min 0 s" },
    { 245 * S, "4 min 5 s" },
    { 3600 * S, "1 h 0 min" },
    { 11520 * S, "3 h 12 min" },
    { 47 * 3600 * S, "47 h 0 min" },
    { 52 * 3600 * S, "2 d 4 h" },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_string_equal(ctl_format_span(rows[i].ns).s, rows[i].text);
}

static void rates_have_three_digits(void **state)
{
  (void)state;
  assert_string_equal(ctl_format_rate(63000, 3200 * MS).s, "19,700");
  assert_string_equal(ctl_format_rate(5, S).s, "5");
  assert_string_equal(ctl_format_rate(1234567, S).s, "1,230,000");
  assert_string_equal(ctl_format_rate(9999, S).s, "10,000");
  assert_string_equal(ctl_format_rate(1, 0).s, "0");
}

static void numbers_on_the_command_line_are_checked(void **state)
{
  uint64_t n = 77;
  const char *bad[] = { "", "-1", "+1", " 1", "1x", "0", "11", "99999999999999999999", "0x1" };

  (void)state;
  assert_int_equal(ctl_parse_number("--n", "10", 1, 10, &n), ERR_OK);
  assert_int_equal(n, 10);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(ctl_parse_number("--n", bad[i], 1, 10, &n), ERR_USAGE);
    assert_non_null(strstr(err_message(), "--n expects a whole number from 1 to 10"));
  }
  assert_int_equal(n, 10);
}

static void progress_shows_share_rate_and_time_left(void **state)
{
  struct ctl_progress p = { .label = "loading", .total = 1000 };
  char line[256];

  (void)state;
  ctl_progress_print(&p, 500, 20000, 10 * S, line, sizeof line);
  assert_string_equal(line, "loading [############            ]  50 %  20,000 items  2,000 items/s  10 s left");
  ctl_progress_print(&p, 0, 0, S, line, sizeof line);
  assert_string_equal(line, "loading [                        ]   0 %  0 items  0 items/s");
  ctl_progress_print(&p, 1200, 7, S, line, sizeof line);
  assert_string_equal(line, "loading [########################] 100 %  7 items  7 items/s  0.00 ms left");
  p.total = 0;
  ctl_progress_print(&p, 500, 20000, 10 * S, line, sizeof line);
  assert_string_equal(line, "loading  20,000 items  2,000 items/s");
  p.unit = "queries";
  ctl_progress_print(&p, 500, 20000, 10 * S, line, sizeof line);
  assert_string_equal(line, "loading  20,000 queries  2,000 queries/s");
}

static void the_watermark_is_waited_for_in_every_partition(void **state)
{
  struct ctl_positions p = { 0 };
  json_t *watermark = json_loads("[{\"partition\":7,\"next\":12},{\"partition\":0,\"next\":5}]", 0, NULL);

  (void)state;
  assert_int_equal(ctl_positions_behind(&p, watermark), 0);
  assert_int_equal(ctl_positions_add(&p, 0, 4), ERR_OK);
  assert_int_equal(ctl_positions_behind(&p, watermark), 0); /* offset 4 is below next 5 */
  assert_int_equal(ctl_positions_add(&p, 7, 13), ERR_OK);
  assert_int_equal(ctl_positions_add(&p, 7, 11), ERR_OK); /* an earlier offset changes nothing */
  assert_int_equal(ctl_positions_behind(&p, watermark), 2);
  assert_int_equal(ctl_positions_add(&p, 3, 0), ERR_OK);
  assert_int_equal(ctl_positions_behind(&p, watermark), 3);
  assert_int_equal(ctl_positions_behind(&p, NULL), 5 + 14 + 1);
  ctl_positions_fini(&p);
  json_decref(watermark);
}

static void assert_rebuild_is_printed(const char *json, const char *expected)
{
  json_t *rebuild = json ? json_loads(json, 0, NULL) : NULL;
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  ctl_rebuild_print(rebuild, out);
  fclose(out);
  assert_string_equal(text, expected);
  free(text);
  json_decref(rebuild);
}

static void a_rebuild_is_printed_with_progress_and_reason(void **state)
{
  (void)state;
  assert_rebuild_is_printed(NULL, "");
  assert_rebuild_is_printed("{\"number\":3,\"items\":12,\"live_items\":19900,\"waits\":false}",
                            "rebuild    number 3: 12 items so far; the 19,900 items of the old catalogue are served\n");
  assert_rebuild_is_printed("{\"number\":3,\"items\":12,\"live_items\":19900,\"waits\":true,\"reason\":\"too few\"}",
                            "rebuild    number 3: 12 items so far; the 19,900 items of the old catalogue are served\n"
                            "           it WAITS for `sluicectl rebuild accept`\n"
                            "           too few\n");
}

static void only_a_rebuild_that_waits_is_accepted(void **state)
{
  json_t *waits = json_loads("{\"number\":7,\"waits\":true}", 0, NULL);
  json_t *goes_on = json_loads("{\"number\":7,\"waits\":false}", 0, NULL);
  uint64_t number = 0;

  (void)state;
  assert_int_equal(ctl_rebuild_waiting(NULL, &number), ERR_SYSTEM);
  assert_int_equal(ctl_rebuild_waiting(goes_on, &number), ERR_SYSTEM);
  assert_int_equal(number, 0);
  assert_int_equal(ctl_rebuild_waiting(waits, &number), ERR_OK);
  assert_int_equal(number, 7);
  json_decref(waits);
  json_decref(goes_on);
}

static size_t count_files(const char *directory)
{
  DIR *d = opendir(directory);
  size_t n = 0;

  assert_non_null(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n - 2; /* . and .. */
}

static void the_number_of_an_accepted_rebuild_is_written_whole(void **state)
{
  char directory[] = "/tmp/sluice-ctl-XXXXXX", path[64], text[32] = "";

  (void)state;
  assert_non_null(mkdtemp(directory));
  snprintf(path, sizeof path, "%s/%s", directory, CATALOGUE_REBUILD_FILE);
  assert_int_equal(ctl_rebuild_write(directory, 41), ERR_OK);
  assert_int_equal(ctl_rebuild_write(directory, 18446744073709551615u), ERR_OK); /* replaces it */
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_string_equal(text, "18446744073709551615\n");
  assert_int_equal(count_files(directory), 1); /* nothing temporary is left */
  unlink(path);
  rmdir(directory);
  assert_int_equal(ctl_rebuild_write(directory, 1), ERR_SYSTEM);
  assert_non_null(strstr(err_message(), directory));
}

static err_code_t read_line(const char *line, struct region *r, struct ctl_record *out)
{
  region_reset(r);
  return ctl_item_line_read(span_of_str(line), r, out);
}

static void a_line_becomes_the_record_that_the_daemon_reads(void **state)
{
  struct region r = { 0 };
  struct ctl_record record;
  struct item_change change = { 0 };

  (void)state;
  assert_int_equal(read_line(" { \"value\" : {\"parts\":{\"a,}\\\"{\":{\"vector\":[0.5,-1e2]},"
                             "\"b\":{\"codes\":[0,255]}}} , "
                             "\"key\":\"g\\u00e4mp\"}\r\n",
                             &r, &record),
                   ERR_OK);
  assert_true(span_equal(record.key, span_of_str("g\xc3\xa4mp")));
  assert_false(record.is_delete);
  assert_int_equal(wire_decode_item(record.value, WIRE_PROTOBUF, &r, &change), ERR_OK);
  assert_int_equal(change.n_parts, 2);
  assert_true(span_equal(change.parts[0].space, span_of_str("a,}\"{")));
  assert_int_equal(change.parts[0].vector.n, 2);
  assert_true(change.parts[0].vector.v[0] == 0.5f && change.parts[0].vector.v[1] == -100.0f);
  assert_true(span_equal(change.parts[1].codes, span_of("\0\xff", 2)));
  region_fini(&r);
}

static void null_deletes_and_keys_may_be_base64(void **state)
{
  struct region r = { 0 };
  struct ctl_record record;

  (void)state;
  assert_int_equal(read_line("{\"key\":\"x\",\"value\":null}", &r, &record), ERR_OK);
  assert_true(record.is_delete);
  assert_int_equal(read_line("{\"key\":{\"base64\":\"/wA=\"},\"value\":null}", &r, &record), ERR_OK);
  assert_true(span_equal(record.key, span_of("\xff\0", 2)));
  assert_int_equal(read_line("{\"key\":\"a\\u0000b\",\"value\":null}", &r, &record), ERR_OK);
  assert_true(span_equal(record.key, span_of("a\0b", 3)));
  region_fini(&r);
}

static void unusable_lines_are_refused_with_the_reason(void **state)
{
  struct region r = { 0 };
  char long_key[300];
  char line[400];
  const struct {
    const char *line;
    const char *reason;
  } rows[] = {
    { "", "expects an object" },
    { "[]", "expects an object" },
    { "{", "not JSON" },
    { "{}", "no \"key\"" },
    { "{\"key\":\"a\"}", "no \"value\"" },
    { "{\"value\":null}", "no \"key\"" },
    { "{\"key\":\"a\",\"value\":null", "not JSON" },
    { "{\"key\":\"a\",\"value\":null}}", "more after" },
    { "{\"key\":\"a\",\"value\":null} {", "more after" },
    { "{\"key\":\"a\",\"value\":nul}", "" },
    { "{\"key\":\"a\",\"value\":nullx}", "" },
    { "{\"key\":\"a\",\"value\":3}", "JSON, but an integer where an object is expected" },
    { "{\"key\":\"a\",\"value\":\"x\"}", "JSON, but text where an object is expected" },
    { "{\"key\":\"a\" \"value\":null}", "not JSON" },
    { "{\"key\":\"a\",\"value\":null,}", "not JSON" },
    { "{\"key\":\"a\",\"key\":\"b\",\"value\":null}", "key is given twice" },
    { "{\"key\":\"a\",\"valeu\":null}", "unknown member \"valeu\": " },
    { "{\"key\":3,\"value\":null}", "key: expects a string" },
    { "{\"key\":{\"base64\":\"*\"},\"value\":null}", "not Base64" },
    { "{\"key\":{\"base32\":\"aa\"},\"value\":null}", "key: expects a string" },
    { "{\"key\":\"\",\"value\":null}", "it has 0 bytes" },
    { "{\"key\":\"\xff\",\"value\":null}", "key: " },
    { "{\"key\":\"a\",\"value\":{}}", "no parts" },
    { "{\"key\":\"a\",\"value\":{\"part\":{}}}", "part" },
    { "{\"key\":\"a\",\"value\":{\"parts\":{\"s\":{\"vector\":[1,\"x\"]}}}}", "vector" },
    { "{\"key\":\"a\",\"value\":{\"parts\":{\"s\":{\"vector\":[1e99]}}}}", "vector" },
    { "{\"key\":\"a\",\"value\":{\"parts\":{\"s\":{\"codes\":[256]}}}}", "codes" },
    { "{\"key\":\"a\",\"value\":{\"parts\":{\"s\":{\"codes\":[1]}]}}", "" },
    { "{\"key\":\"a\\", "not JSON" },
    { "{\"key\":\"a\",\"value\":\"", "not JSON" },
  };
  struct ctl_record record;

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    err_code_t result = read_line(rows[i].line, &r, &record);
    if (err_class(result) != ERR_CLASS_REJECT || !strstr(err_message(), rows[i].reason))
      fail_msg("%s: expected ...%s..., got %d: %s", rows[i].line, rows[i].reason, result, err_message());
  }
  memset(long_key, 'k', 256);
  long_key[256] = '\0';
  snprintf(line, sizeof line, "{\"key\":\"%s\",\"value\":null}", long_key);
  assert_int_equal(read_line(line, &r, &record), ERR_OK);
  snprintf(line, sizeof line, "{\"key\":\"%sk\",\"value\":null}", long_key);
  assert_int_equal(read_line(line, &r, &record), ERR_ITEM);
  region_fini(&r);
}

/* Each line is in a block of its exact size, so that the sanitizer sees an over-read. Every line that the reader
 * accepts must also be JSON for jansson. */
static void any_line_is_read_or_refused(void **state)
{
  static const char valid[] =
      "{\"key\":\"gimp\",\"value\":{\"parts\":{\"s\":{\"vector\":[1,2.5]},\"t\":{\"codes\":[1]}}}}";
  static const char alphabet[] = "{}[]\",:\\ 0a\n\xff";
  struct dice dice = { dice_seed() };
  struct region r = { 0 };
  int n_read = 0;

  (void)state;
  for (int round = 0; round < FUZZ_ROUNDS; round++) {
    struct ctl_record record;
    size_t n = round % 3 ? sizeof valid - 1 : dice_below(&dice, sizeof valid - 1);
    char *line = malloc(n);
    memcpy(line, valid, n);
    for (size_t i = 0, n_changes = dice_below(&dice, 3); n && i < n_changes; i++)
      line[dice_below(&dice, n)] = alphabet[dice_below(&dice, sizeof alphabet - 1)];
    region_reset(&r);
    err_code_t result = ctl_item_line_read(span_of(line, n), &r, &record);
    assert_true(result == ERR_OK || err_class(result) == ERR_CLASS_REJECT);
    if (result == ERR_OK) {
      json_t *json = json_loadb(line, n, JSON_ALLOW_NUL, NULL);
      assert_non_null(json);
      json_decref(json);
      n_read++;
    }
    free(line);
  }
  assert_in_range(n_read, FUZZ_ROUNDS / 10, FUZZ_ROUNDS - 1);
  region_fini(&r);
}

static err_code_t add(struct ctl_queries *q, const char *text)
{
  return ctl_queries_add(q, span_of_str(text), "answers");
}

static void a_query_without_an_id_gets_one_of_its_own(void **state)
{
  struct ctl_queries q;
  json_t *sent;

  (void)state;
  ctl_queries_init(&q);
  assert_int_equal(add(&q, "{\"k\":3,\"vector\":[0.1]}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"\",\"k\":3}\n"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":null,\"user_id\":9223372036854775807,\"reply_topic\":\"answers\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"mine\"}"), ERR_OK);
  assert_int_equal(q.n_open, 4);
  assert_string_not_equal(q.items[0].id, q.items[1].id);
  assert_string_equal(q.items[3].id, "mine");
  assert_string_equal(q.items[3].text, "{\"id\":\"mine\"}");
  sent = json_loads(q.items[0].text, 0, NULL);
  assert_string_equal(json_string_value(json_object_get(sent, "id")), q.items[0].id);
  assert_true(json_real_value(json_array_get(json_object_get(sent, "vector"), 0)) == 0.1);
  json_decref(sent);
  assert_non_null(strstr(q.items[2].text, "9223372036854775807"));
  ctl_queries_fini(&q);
}

static void unusable_queries_are_refused(void **state)
{
  struct ctl_queries q;

  (void)state;
  ctl_queries_init(&q);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  const char *bad[] = { "",
                        "[]",
                        "3",
                        "{",
                        "{} {}",
                        "{\"id\":3}",
                        "{\"id\":\"a\"}",
                        "{\"k\":1,\"k\":2}",
                        "{\"reply_topic\":\"other\"}",
                        "{\"replyTopic\":\"other\"}" };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(add(&q, bad[i]), ERR_QUERY);
  assert_int_equal(add(&q, "\"x\""), ERR_QUERY);
  assert_non_null(strstr(err_message(), "a query must be an object"));
  assert_int_equal(q.n, 1);
  ctl_queries_fini(&q);
}

static void a_filter_goes_to_all_queries_that_have_none(void **state)
{
  struct ctl_queries q;

  (void)state;
  ctl_queries_init(&q);
  assert_int_equal(add(&q, "{\"id\":\"a\",\"k\":1}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"b\"}"), ERR_OK);
  assert_int_equal(ctl_queries_set_filter(&q, "price < $1", "{}"), ERR_USAGE);
  assert_int_equal(ctl_queries_set_filter(&q, "price < $1", "["), ERR_USAGE);
  assert_int_equal(ctl_queries_set_filter(&q, "\xff", NULL), ERR_USAGE);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"k\":1}");
  assert_int_equal(ctl_queries_set_filter(&q, "price < $1", "[9.5]"), ERR_OK);
  assert_string_equal(q.items[0].text, "{\"id\":\"a\",\"k\":1,\"filter\":\"price < $1\",\"parameters\":[9.5]}");
  assert_string_equal(q.items[1].text, "{\"id\":\"b\",\"filter\":\"price < $1\",\"parameters\":[9.5]}");
  assert_int_equal(ctl_queries_set_filter(&q, "true", NULL), ERR_USAGE);
  ctl_queries_fini(&q);
}

static void only_the_first_answer_to_an_open_query_is_taken(void **state)
{
  struct ctl_queries q;

  (void)state;
  ctl_queries_init(&q);
  assert_int_equal(add(&q, "{\"id\":\"a\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"b\"}"), ERR_OK);
  assert_int_equal(add(&q, "{\"id\":\"c\"}"), ERR_OK);
  const char *others[] = {
    "", "\x0a\x01", "{\"id\":\"z\"}", "{\"id\":3}", "[\"a\"]", "{\"hits\":[]}", "{\"id\":\"a\""
  };
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    assert_int_equal(ctl_queries_take(&q, span_of_str(others[i])), ERR_OK);
  assert_int_equal(q.n_open, 3);
  assert_int_equal(ctl_queries_take(&q, span_of_str("{\"id\":\"b\",\"epoch\":1}")), ERR_OK);
  assert_int_equal(ctl_queries_take(&q, span_of_str("{\"id\":\"b\",\"epoch\":2}")), ERR_OK);
  assert_string_equal(q.items[1].answer, "{\"id\":\"b\",\"epoch\":1}");
  assert_int_equal(q.n_open, 2);
  assert_int_equal(ctl_queries_fail(&q, 0, "gone"), ERR_OK);
  assert_int_equal(ctl_queries_fail(&q, 0, "gone again"), ERR_OK);
  assert_int_equal(ctl_queries_fail(&q, 1, "too late"), ERR_OK);
  assert_string_equal(q.items[0].failure, "gone");
  assert_null(q.items[1].failure);
  assert_int_equal(ctl_queries_take(&q, span_of_str("{\"id\":\"a\"}")), ERR_OK);
  assert_null(q.items[0].answer);
  assert_int_equal(q.n_open, 1);
  ctl_queries_fini(&q);
}

static char *printed(const char *answer)
{
  json_t *json = json_loads(answer, 0, NULL);
  char *text;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  assert_non_null(json);
  ctl_answer_print(json, out);
  fclose(out);
  json_decref(json);
  return text;
}

static void an_answer_is_a_table_with_its_receipt(void **state)
{
  char *text = printed("{\"id\":\"q1\",\"space\":\"books\",\"method\":\"average(4000)\",\"hits\":["
                       "{\"key\":\"g\\u00e4mp\",\"score\":0.93215},{\"key\":{\"base64\":\"/w==\"},\"score\":-2}],"
                       "\"receipt\":{\"exact\":false,\"bound\":0.5},\"epoch\":12,"
                       "\"counts\":{\"items\":63000,\"scored\":4000,\"candidates\":5000},"
                       "\"times\":{\"queued_us\":210,\"searched_us\":1300}}");

  (void)state;
  assert_string_equal(text, "q1: 2 hits in books\n"
                            "  rank  key                 score\n"
                            "     1  g\xc3\xa4mp              0.93215\n"
                            "     2  base64:/w==            -2\n"
                            "  method average(4000): approximate, no other item scores above 0.5; scored 4,000 of "
                            "63,000 items (5,000 candidates); queued 0.21 ms, searched 1.3 ms; epoch 12\n");
  free(text);
  text = printed("{\"id\":\"q\",\"space\":\"s\",\"method\":\"exact\",\"receipt\":{\"exact\":true}}");
  assert_string_equal(text, "q: 0 hits in s\n"
                            "  method exact: exact; scored 0 of 0 items; queued 0.00 ms, searched 0.00 ms; epoch 0\n");
  free(text);
}

static void a_partial_answer_says_so_in_its_table(void **state)
{
  char *text = printed("{\"id\":\"q\",\"space\":\"s\",\"method\":\"exact\",\"receipt\":{\"exact\":false,"
                       "\"bound\":3.40282347e+38},\"parts\":{\"answered\":1,\"of\":2}}");

  (void)state;
  assert_non_null(strstr(text, "\n  1 of 2 shards have answered: items may be missing\n"));
  assert_non_null(strstr(text, "  method exact: approximate; scored 0"));
  free(text);
  text = printed("{\"id\":\"q\",\"parts\":{\"answered\":2,\"of\":2}}");
  assert_null(strstr(text, "shards"));
  free(text);
}

static void keys_cannot_control_the_terminal(void **state)
{
  char *text = printed("{\"id\":\"a\\u001b\",\"hits\":[{\"key\":\"\\u001b[31m\\u009b\\n\",\"score\":1}]}");

  (void)state;
  assert_null(strchr(text, '\x1b'));
  assert_non_null(strstr(text, "\\x1b[31m\\x9b\\x0a"));
  assert_non_null(strstr(text, "a\\x1b: 1 hit in"));
  free(text);
  text = printed("{\"id\":\"a\",\"hits\":[{\"key\":\"\\u202ea\\u202f\\u2066\\u2070\\u007f\",\"score\":1}]}");
  assert_non_null(strstr(text, "1  \\u202ea\xe2\x80\xaf\\u2066\xe2\x81\xb0\\x7f "));
  free(text);
}

/* Every character up to U+FFFF, and one beyond. */
static void json_for_a_terminal_has_the_same_value(void **state)
{
  static const char *const unsafe[] = { "\x7f",         "\xc2\x80",     "\xc2\x9f",    "\xe2\x80\xaa",
                                        "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9" };
  char *text, *every = malloc(6 * 65536 + 8);
  size_t n_text, n = (size_t)sprintf(every, "\"\xf0\x9f\x8d\x82");

  (void)state;
  for (unsigned c = 1; c < 0x10000; c++) {
    if (c < 0xd800 || c > 0xdfff)
      n += (size_t)sprintf(every + n, "\\u%04x", c);
  }
  strcpy(every + n, "\"");
  json_t *json = json_loads(every, JSON_DECODE_ANY, NULL);
  FILE *out = open_memstream(&text, &n_text);
  assert_true(ctl_print_json_value(json, JSON_ENCODE_ANY, out));
  fclose(out);
  json_t *again = json_loads(text, JSON_DECODE_ANY, NULL);
  assert_true(json_equal(json, again));
  for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++)
    assert_null(strstr(text, unsafe[i]));
  assert_non_null(strstr(text, "~\\u007f\\u0080"));
  assert_non_null(strstr(text, "\\u009f\xc2\xa0"));
  assert_non_null(strstr(text, "\\u202e\xe2\x80\xaf"));
  json_decref(json);
  json_decref(again);
  free(every);
  free(text);
}

static void an_error_is_printed_with_its_code(void **state)
{
  json_t *bad = json_loads("{\"error\":{\"code\":\"BAD_QUERY\",\"message\":\"k: at least 1\"}}", 0, NULL);
  json_t *good = json_loads("{\"id\":\"x\"}", 0, NULL);
  char *text = ctl_answer_error(bad);

  (void)state;
  assert_string_equal(text, "BAD_QUERY: k: at least 1");
  assert_null(ctl_answer_error(good));
  free(text);
  json_decref(bad);
  json_decref(good);
}

static void times_on_the_command_line_are_moments_or_spans(void **state)
{
  const struct {
    const char *text;
    int64_t unix_ms;
  } rows[] = {
    { "90s", 1000000000 - 90000 },    { "10m", 1000000000 - 600000 },       { "2h", 1000000000 - 7200000 },
    { "7d", 1000000000 - 604800000 }, { "1970-01-02T00:00:00Z", 86400000 }, { "0s", 1000000000 },
  };
  const char *bad[] = { "", "s", "10", "10w", "10mm", "-5m", "1.5h", "9999999999s", "yesterday" };
  int64_t unix_ms = 7;

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(ctl_parse_time("--since", bad[i], 1000000000, &unix_ms), ERR_USAGE);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(ctl_parse_time("--since", rows[i].text, 1000000000, &unix_ms), ERR_OK);
    assert_true(unix_ms == rows[i].unix_ms);
  }
}

static void a_space_is_listed_once_and_its_current_generation_counts(void **state)
{
  json_t *spaces = json_loads("[{\"name\":\"pq\",\"current\":false,\"item_codes\":4,\"query_vector\":8},"
                              "{\"name\":\"pq\",\"current\":true,\"item_codes\":2,\"query_vector\":16},"
                              "{\"name\":\"mol\",\"current\":true,\"query_vector\":7}]",
                              0, NULL);
  struct ctl_space space;

  (void)state;
  assert_int_equal(ctl_space_choose(spaces, "pq", &space), ERR_OK);
  assert_true(space.is_known);
  assert_int_equal(space.lengths.item_codes, 2);
  assert_int_equal(space.lengths.query_vector, 16);
  assert_int_equal(ctl_space_choose(spaces, NULL, &space), ERR_USAGE);
  assert_non_null(strstr(err_message(), "--space NAME, of pq, mol"));
  assert_int_equal(ctl_space_choose(spaces, "no", &space), ERR_USAGE);
  assert_non_null(strstr(err_message(), "no space \"no\", but pq, mol"));
  json_array_remove(spaces, 2);
  assert_int_equal(ctl_space_choose(spaces, NULL, &space), ERR_OK);
  assert_string_equal(space.name, "pq");
  json_array_clear(spaces);
  assert_int_equal(ctl_space_choose(spaces, NULL, &space), ERR_USAGE);
  assert_non_null(strstr(err_message(), "give a shard's configuration as --config FILE"));
  json_decref(spaces);
}

static void assert_series(const struct ctl_series *s, size_t n, const char *due)
{
  char text[CTL_SERIES_MAX + 1] = "";
  FILE *file = fmemopen(text, sizeof text, "w");

  ctl_series_print(s, n, true, file);
  fclose(file);
  assert_string_equal(text, due);
}

static void a_series_has_eight_heights(void **state)
{
  struct ctl_series s = { 0 };

  (void)state;
  assert_series(&s, 5, "");
  ctl_series_add(&s, 0);
  assert_series(&s, 5, " ");
  for (int i = 0; i <= 8; i++)
    ctl_series_add(&s, i);
  assert_series(&s, 20, "  _.-:=+*#");
  assert_series(&s, 3, "+*#");
  ctl_series_add(&s, 1e9); /* smaller values are not lost beside a large one */
  assert_series(&s, 3, "__#");
  for (int i = 0; i < 3 * CTL_SERIES_MAX; i++)
    ctl_series_add(&s, 2);
  assert_series(&s, 4, "####");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_have_commas),
    cmocka_unit_test(durations_have_two_digits_and_a_fitting_unit),
    cmocka_unit_test(rates_have_three_digits),
    cmocka_unit_test(numbers_on_the_command_line_are_checked),
    cmocka_unit_test(times_on_the_command_line_are_moments_or_spans),
    cmocka_unit_test(a_space_is_listed_once_and_its_current_generation_counts),
    cmocka_unit_test(a_series_has_eight_heights),
    cmocka_unit_test(progress_shows_share_rate_and_time_left),
    cmocka_unit_test(the_watermark_is_waited_for_in_every_partition),
    cmocka_unit_test(a_rebuild_is_printed_with_progress_and_reason),
    cmocka_unit_test(only_a_rebuild_that_waits_is_accepted),
    cmocka_unit_test(the_number_of_an_accepted_rebuild_is_written_whole),
    cmocka_unit_test(a_line_becomes_the_record_that_the_daemon_reads),
    cmocka_unit_test(null_deletes_and_keys_may_be_base64),
    cmocka_unit_test(unusable_lines_are_refused_with_the_reason),
    cmocka_unit_test(any_line_is_read_or_refused),
    cmocka_unit_test(a_query_without_an_id_gets_one_of_its_own),
    cmocka_unit_test(unusable_queries_are_refused),
    cmocka_unit_test(a_filter_goes_to_all_queries_that_have_none),
    cmocka_unit_test(only_the_first_answer_to_an_open_query_is_taken),
    cmocka_unit_test(an_answer_is_a_table_with_its_receipt),
    cmocka_unit_test(a_partial_answer_says_so_in_its_table),
    cmocka_unit_test(keys_cannot_control_the_terminal),
    cmocka_unit_test(json_for_a_terminal_has_the_same_value),
    cmocka_unit_test(an_error_is_printed_with_its_code),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
