/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the seen topic, in protobuf and JSON, and wrong ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/assert_ok.h"
#include "tests/support/wire_fixture.h"

enum { NO_TIME = 77 };

static err_code_t decode(struct span value, enum wire_format format, struct seen_change *out)
{
  region_reset(&region);
  *out = (struct seen_change){ .time_unix_ms = NO_TIME };
  return wire_decode_seen(value, format, &region, out);
}

static void assert_decodes(struct span value, enum wire_format format, int64_t time_unix_ms)
{
  struct seen_change change;

  assert_ok(decode(value, format, &change));
  assert_int_equal(change.n_items, 2);
  assert_true(span_equal(change.items[0], span_of_str("film-1")));
  assert_true(span_equal(change.items[1], span_of_str("\xc3\xbc")));
  assert_int_equal(change.time_unix_ms, time_unix_ms);
}

static void records_mean_the_same_in_both_formats(void **state)
{
  ProtobufCBinaryData items[] = { { 6, (uint8_t *)(uintptr_t) "film-1" }, { 2, (uint8_t *)(uintptr_t) "\xc3\xbc" } };
  Sluice__V1__Seen seen = SLUICE__V1__SEEN__INIT;
  uint8_t bytes[64];

  (void)state;
  seen.items = items;
  seen.n_items = 2;
  assert_decodes(span_of(bytes, sluice__v1__seen__pack(&seen, bytes)), WIRE_PROTOBUF, NO_TIME);
  seen.time_unix_ms = 1790000000000;
  message_mark(&seen.base, "time_unix_ms");
  assert_decodes(span_of(bytes, sluice__v1__seen__pack(&seen, bytes)), WIRE_PROTOBUF, 1790000000000);
  assert_decodes(span_of_str("{\"items\":[\"film-1\",\"\xc3\xbc\"]}"), WIRE_JSON, NO_TIME);
  assert_decodes(span_of_str("{\"items\":[\"film-1\",\"\\u00fc\"],\"time_unix_ms\":0}"), WIRE_JSON, 0);
  assert_decodes(span_of_str("{\"items\":[\"film-1\",\"\xc3\xbc\"],\"timeUnixMs\":\"1790000000000\"}"), WIRE_JSON,
                 1790000000000);
}

static void wrong_records_are_refused_with_the_reason(void **state)
{
  static const struct {
    const char *json;
    err_code_t code;
    const char *reason;
  } wrong[] = {
    { "{}", ERR_ITEM, "items: there are none" },
    { "{\"items\":[]}", ERR_ITEM, "items: there are none" },
    { "{\"items\":[\"a\",\"\"]}", ERR_ITEM, "items[1]: a key has 1 to 256 bytes" },
    { "{\"items\":[1]}", ERR_ITEM, "items[0]" },
    { "{\"items\":\"a\"}", ERR_ITEM, "items" },
    { "{\"itms\":[\"a\"]}", ERR_ITEM, "itms" },
    { "{\"items\":[\"a\"],\"time_unix_ms\":-1}", ERR_ITEM, "before 1970" },
    { "{\"items\":[\"a\"],\"time_unix_ms\":1.5}", ERR_ITEM, "time_unix_ms" },
    { "[\"a\"]", ERR_WIRE, "object" },
    { "{\"items\"", ERR_WIRE, "not JSON" },
  };
  struct seen_change change;

  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_fails(decode(span_of_str(wrong[i].json), WIRE_JSON, &change), wrong[i].code, wrong[i].reason);
  assert_fails(decode(span_of_str("\xff\xff"), WIRE_PROTOBUF, &change), ERR_WIRE, "");
}

static void a_record_has_at_most_so_many_items(void **state)
{
  static uint8_t bytes[3 * (SEEN_ITEMS_MAX + 1)];
  struct seen_change change;

  (void)state;
  for (size_t i = 0; i <= SEEN_ITEMS_MAX; i++)
    memcpy(bytes + 3 * i, "\x0a\x01k", 3);
  assert_ok(decode(span_of(bytes, 3 * SEEN_ITEMS_MAX), WIRE_PROTOBUF, &change));
  assert_int_equal(change.n_items, SEEN_ITEMS_MAX);
  assert_fails(decode(span_of(bytes, sizeof bytes), WIRE_PROTOBUF, &change), ERR_ITEM, "items");
}

static size_t pack_long_keys(uint8_t *bytes, size_t n)
{
  static uint8_t key[ITEM_KEY_MAX];
  Sluice__V1__Seen seen = SLUICE__V1__SEEN__INIT;

  memset(key, 'k', sizeof key);
  seen.items = calloc(n, sizeof *seen.items);
  assert_non_null(seen.items);
  seen.n_items = n;
  for (size_t i = 0; i < n; i++)
    seen.items[i] = (ProtobufCBinaryData){ sizeof key, key };
  size_t n_bytes = sluice__v1__seen__pack(&seen, bytes);
  free(seen.items);
  return n_bytes;
}

/* A batch keeps records decoded: the memory that only decoding needed is not kept. */
static void a_large_record_keeps_only_its_keys(void **state)
{
  enum { N_KEYS = 2000, KEY_BYTES = 4 + ITEM_KEY_MAX };
  static uint8_t bytes[N_KEYS * KEY_BYTES];
  struct seen_change change;

  (void)state;
  size_t n = pack_long_keys(bytes, N_KEYS);
  assert_ok(decode(span_of(bytes, n), WIRE_PROTOBUF, &change));
  memset(bytes, 0xa5, n);
  assert_int_equal(change.n_items, N_KEYS);
  for (size_t i = 0; i < N_KEYS; i++) {
    assert_int_equal(change.items[i].n, ITEM_KEY_MAX);
    assert_int_equal(change.items[i].p[ITEM_KEY_MAX - 1], 'k');
  }
  assert_true(region.taken_bytes <= N_KEYS * (sizeof *change.items + ITEM_KEY_MAX + 16) + 16);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(records_mean_the_same_in_both_formats),
    cmocka_unit_test(wrong_records_are_refused_with_the_reason),
    cmocka_unit_test(a_record_has_at_most_so_many_items),
    cmocka_unit_test(a_large_record_keeps_only_its_keys),
  };

  return cmocka_run_group_tests(tests, NULL, free_regions);
}
