/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of records that are made of lines of a catalogue file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>

#include "daemon/ctl/writer/ctl_record.h"
#include "ingest/wire/wire.h"
#include "tests/support/dice.h"

enum { FUZZ_ROUNDS = 20000 };

static err_code_t read_line(const char *line, struct region *r, struct ctl_record *out)
{
  region_reset(r);
  return ctl_record_read(span_of_str(line), r, out);
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
    err_code_t result = ctl_record_read(span_of(line, n), &r, &record);
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

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_line_becomes_the_record_that_the_daemon_reads),
    cmocka_unit_test(null_deletes_and_keys_may_be_base64),
    cmocka_unit_test(unusable_lines_are_refused_with_the_reason),
    cmocka_unit_test(any_line_is_read_or_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
