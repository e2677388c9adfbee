/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on messages from outside. Hostile messages are refused with the name of the field, and decoding takes at most
 * a fixed multiple of their size. Honest messages of every shape are accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/wire/wire.h"
#include "ingest/wire/wire_message.h"
#include "tests/support/assert_ok.h"
#include "tests/support/heap.h"

enum { ROOM = (4 << 20) + 1024 };

static struct region region;

/* The message that a test builds. */
static uint8_t buffer[ROOM];
static size_t n_buffer;

static void start(void)
{
  n_buffer = 0;
  region_trim(&region, 0);
}

static void put(const void *bytes, size_t n)
{
  assert_true(n_buffer + n <= ROOM);
  if (n)
    memcpy(buffer + n_buffer, bytes, n);
  n_buffer += n;
}

static void put_text(const char *text)
{
  put(text, strlen(text));
}

static void put_varint(uint64_t value)
{
  uint8_t byte;

  do {
    byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    put(&byte, 1);
    value >>= 7;
  } while (value);
}

static void put_number(unsigned id, uint64_t value)
{
  put_varint(id << 3);
  put_varint(value);
}

static void put_field(unsigned id, const void *bytes, size_t n)
{
  put_varint(id << 3 | 2);
  put_varint(n);
  put(bytes, n);
}

/* Turn the bytes built so far into a field of this number, and put it after the bytes in `before`. */
static void wrap(unsigned id, const char *before, size_t n_before)
{
  static uint8_t copy[ROOM];
  size_t n = n_buffer;

  memcpy(copy, buffer, n);
  n_buffer = 0;
  put(before, n_before);
  put_field(id, copy, n);
}

static err_code_t decode_query(enum wire_format format, struct query *out)
{
  *out = (struct query){ 0 };
  return wire_decode_query(span_of(buffer, n_buffer), format, &region, out);
}

static err_code_t decode_item(enum wire_format format)
{
  struct item_change item;

  return wire_decode_item(span_of(buffer, n_buffer), format, &region, &item);
}

static void assert_refused_query(enum wire_format format, const char *sentence, const char *id, const char *space,
                                 const char *reply_topic)
{
  struct query q;

  assert_fails(decode_query(format, &q), ERR_QUERY, sentence);
  assert_true(span_equal(q.id, span_of_str(id)));
  assert_true(span_equal(q.space, span_of_str(space)));
  assert_true(span_equal(q.reply_topic, span_of_str(reply_topic)));
  assert_int_equal(q.k + q.n_exclude + q.n_at_least + q.vector.n + q.method.n, 0);
}

/* ---- Fields that occur twice ---- */

static void a_field_that_occurs_twice_is_refused_by_name(void **state)
{
  static const struct {
    unsigned id;
    const char *name;
  } fields[] = { { 4, "method" }, { 5, "vector" }, { 6, "components" }, { 7, "query_gate" } };
  char sentence[64];

  (void)state;
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    start();
    put_text("\x0a\x01q\x12\x01s\x62\x01t");
    put_field(fields[i].id, NULL, 0);
    put_field(fields[i].id, NULL, 0);
    snprintf(sentence, sizeof sentence, "%s: it occurs twice", fields[i].name);
    assert_refused_query(WIRE_PROTOBUF, sentence, "q", "s", "t");
  }
  start();
  put_text("\x0a\x01q\x12\x01s\x0a\x01r\x62\x01t"); /* which of the two ids is it? */
  assert_refused_query(WIRE_PROTOBUF, "id: it occurs twice", "", "s", "t");
  start();
  put_text("\x2a\x06\x12\x01"
           "a\x12\x01"
           "b\x0a\x01q");
  assert_refused_query(WIRE_PROTOBUF, "vector.data: it occurs twice", "q", "", "");
}

static void a_field_of_an_item_that_occurs_twice_is_refused_by_name(void **state)
{
  static const struct {
    const char *entry; /* an entry of the map */
    size_t n;
    const char *sentence;
  } cases[] = {
    { "\x0a\x01s\x0a\x01s", 6, "parts.key: it occurs twice" },
    { "\x0a\x01s\x12\x02\x22\x00\x12\x02\x22\x00", 11, "parts.value: it occurs twice" },
    { "\x0a\x01s\x12\x04\x0a\x00\x0a\x00", 9, "parts.value.vector: it occurs twice" },
    { "\x0a\x01s\x12\x06\x22\x01"
      "a\x22\x01"
      "b",
      11, "parts.value.codes: it occurs twice" },
    { "\x0a\x01s\x12\x08\x1a\x06\x12\x01"
      "a\x12\x01"
      "b",
      13, "parts.value.item_gate.data: it occurs twice" },
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    start();
    put_field(1, cases[i].entry, cases[i].n);
    assert_fails(decode_item(WIRE_PROTOBUF), ERR_ITEM, cases[i].sentence);
    assert_int_equal(region.taken_bytes, 0);
  }
}

/* The last one counts, as in protobuf. */
static void a_number_may_occur_twice(void **state)
{
  struct query q;

  (void)state;
  start();
  put_number(3, 5);
  put_number(3, 7);
  put_number(8, 1);
  put_number(8, 2);
  assert_ok(decode_query(WIRE_PROTOBUF, &q));
  assert_int_equal(q.k, 7);
  assert_true(q.has_user_id && q.user_id == 2);
}

/* A list in several pieces is one list, and its memory is taken once. */
static void a_list_in_pieces_takes_memory_once(void **state)
{
  static const uint8_t piece[8] = { 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f };
  struct query q;

  (void)state;
  start();
  for (size_t i = 0; i < 100000; i++)
    put_field(3, piece, sizeof piece);
  wrap(5, NULL, 0);
  assert_ok(decode_query(WIRE_PROTOBUF, &q));
  assert_int_equal(q.vector.n, 200000);
  assert_true(q.vector.v[0] == 1 && q.vector.v[199999] == 1);
  assert_true(region_bytes(&region) < 16 * n_buffer);
}

/* ---- Memory ---- */

/* Build a vector whose first piece has half of `size` bytes, followed by many pieces of one number. Merging would copy
 * everything before each piece. */
static void put_merges(unsigned id, size_t size)
{
  static const uint8_t numbers[ROOM];
  size_t n = size / 8 * 4;

  put_varint(id << 3 | 2);
  put_varint(n + 1 + (n < 128 ? 1 : n < 16384 ? 2 : n < 2097152 ? 3 : 4));
  put_field(3, numbers, n);
  static uint8_t again[7] = "\0\x05\x1d\0\0\0\0";
  again[0] = (uint8_t)(id << 3 | 2);
  while (n_buffer + 16 < size)
    put(again, sizeof again);
}

static void merged_fields_take_little_memory(void **state)
{
  static const size_t sizes[] = { 50000, 100000, 200000, 990000, WIRE_VALUE_MAX - 64 };
  size_t before = heap_used();

  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    start();
    put_merges(5, sizes[i]);
    assert_refused_query(WIRE_PROTOBUF, "vector: it occurs twice", "", "", "");
    assert_true(region_bytes(&region) <= 8192);

    start(); /* the vector inside a part */
    put_merges(1, sizes[i]);
    wrap(2, "\x0a\x01s", 3);
    wrap(1, NULL, 0);
    assert_fails(decode_item(WIRE_PROTOBUF), ERR_ITEM, "parts.value.vector: it occurs twice");
    assert_true(region_bytes(&region) <= 8192);
  }
  start();
  assert_true(heap_used() <= before + 4096);
}

/* Fields that no message has take the most memory for their size: protobuf-c keeps 50 times as much for one of two
 * bytes. A query has no number below 16 left for such a field, so each takes three, and only a large query reaches the
 * limit. */
static void a_query_that_takes_too_much_memory_is_refused_and_identified(void **state)
{
  (void)state;
  start();
  put_text("\x0a\x01q\x12\x01s\x62\x01t");
  while (n_buffer + 3 <= WIRE_VALUE_MAX)
    put_number(100, 1);
  assert_refused_query(WIRE_PROTOBUF, "the message takes more than", "q", "s", "t");
  assert_true(region_bytes(&region) <= WIRE_TAKEN_MAX + (2 << 20));
}

static void an_item_that_takes_too_much_memory_is_refused(void **state)
{
  (void)state;
  for (size_t size = 64 << 10; size <= WIRE_VALUE_MAX; size *= 64) {
    start();
    while (n_buffer + 2 <= size)
      put_number(15, 1);
    assert_fails(decode_item(WIRE_PROTOBUF), ERR_ITEM, "the message takes more than");
    assert_true(region_bytes(&region) <= WIRE_TAKEN_TIMES * size + 2 * WIRE_TAKEN_MORE + (2 << 20));
    assert_true(region_bytes(&region) <= WIRE_TAKEN_MAX + (2 << 20));
    assert_int_equal(region.limit_bytes, 0);
    void *p; /* the region is still usable */
    assert_ok(region_array(&region, WIRE_TAKEN_MAX + 1, 1, &p));
  }
}

/* A batch of bad items takes the memory of one. */
static void a_refused_item_leaves_the_region_as_it_was(void **state)
{
  void *p;

  (void)state;
  start();
  while (n_buffer + 2 <= 1 << 20)
    put_number(15, 1);
  assert_ok(region_array(&region, 100, 1, &p));
  size_t taken = region.taken_bytes;
  for (int i = 0; i < 20; i++)
    assert_fails(decode_item(WIRE_PROTOBUF), ERR_ITEM, "the message takes more than");
  assert_int_equal(region.taken_bytes, taken);
  assert_true(region_bytes(&region) <= 40 << 20);
}

/* Decoding this item takes 13 times the memory of its parts. The batch keeps only the parts. */
static void a_decoded_item_keeps_only_its_parts(void **state)
{
  enum { N = 100000 };
  struct item_change item = { .offset = 7 };
  void *p;

  (void)state;
  start();
  for (size_t i = 0; i < N; i++)
    put("\x1d\0\0\x80\x3f", 5);
  wrap(3,
       "\x22\x02"
       "ab",
       4);
  wrap(2, "\x0a\x01s", 3);
  wrap(1, NULL, 0);
  assert_ok(region_array(&region, 100, 1, &p));
  size_t before = region.taken_bytes;
  assert_ok(wire_decode_item(span_of(buffer, n_buffer), WIRE_PROTOBUF, &region, &item));
  assert_true(region.taken_bytes - before < 4 * N + 1024);
  memset(buffer, 0xff, n_buffer); /* the item borrows nothing from it */
  assert_int_equal(item.offset, 7);
  assert_int_equal(item.n_parts, 1);
  const struct part *part = &item.parts[0];
  assert_true(span_equal(part->space, span_of_str("s")) && span_equal(part->codes, span_of_str("ab")));
  assert_int_equal(part->item_gate.n, N);
  for (size_t i = 0; i < N; i++)
    assert_true(part->item_gate.v[i] == 1);
  assert_int_equal(part->vector.n + part->components.n, 0);
}

/* If the caller's limit of the region is the smaller one, it applies. */
static void a_smaller_limit_of_the_region_holds(void **state)
{
  struct query q;

  (void)state;
  start();
  for (size_t i = 0; i < 100; i++)
    put_field(9, "some key", 8);
  region.limit_bytes = 2000;
  assert_fails(decode_query(WIRE_PROTOBUF, &q), ERR_QUERY, "the message takes more than");
  assert_int_equal(region.limit_bytes, 2000);
  region.limit_bytes = 0;
  assert_ok(decode_query(WIRE_PROTOBUF, &q));
}

/* ---- Honest messages: each is accepted, also at 64 KiB and above ---- */

enum { SHAPES = 9 };

static void put_exclude(size_t size, size_t n_key, enum wire_format format)
{
  char key[64];

  for (size_t i = 0; n_buffer + n_key + 16 < size && i < QUERY_EXCLUDE_MAX; i++) {
    snprintf(key, sizeof key, "%0*zx", (int)n_key, i);
    if (format == WIRE_PROTOBUF) {
      put_field(9, key + strlen(key) - n_key, n_key);
    } else {
      put_text(i ? ",\"" : "\"");
      put(key + strlen(key) - n_key, n_key);
      put_text("\"");
    }
  }
}

static void put_protobuf_shape(int shape, size_t size)
{
  static const uint8_t zeros[ROOM];

  switch (shape) {
  case 0: /* numbers as bytes */
    put_field(2, zeros, (size - 32) / 4 * 4);
    break;
  case 1: /* as a packed list */
    put_field(3, zeros, (size - 32) / 4 * 4);
    break;
  case 2: /* as a list that is not packed */
    while (n_buffer + 32 < size)
      put("\x1d\0\0\0\0", 5);
    break;
  case 3:
    put_exclude(size, 2, WIRE_PROTOBUF);
    return;
  case 4:
    put_exclude(size, 5, WIRE_PROTOBUF);
    return;
  case 5:
    put_exclude(size, 40, WIRE_PROTOBUF);
    return;
  default:
    for (int i = 0; i < QUERY_AT_LEAST_MAX; i++)
      put_field(10, "\x08\x01\x10\x05", (size_t)(shape - 6) * 2);
    return;
  }
  wrap(5, NULL, 0);
}

static void put_json_shape(int shape, size_t size)
{
  static const char *const numbers[] = { "0.1,", "-0.123456789,", "12," };
  static const char *const starts[] = { "{\"vector\":[", "{\"exclude\":[", "{\"at_least\":[" };

  put_text(starts[shape / 3]);
  if (shape < 3) {
    while (n_buffer + 32 < size && (shape < 2 || n_buffer < 3 << 20))
      put_text(numbers[shape]);
    put_text("1");
  } else if (shape < 6) {
    put_exclude(size, shape == 3 ? 2 : shape == 4 ? 5 : 40, WIRE_JSON);
  } else {
    for (int i = 0; i < QUERY_AT_LEAST_MAX; i++)
      put_text(i == 0 ? "{}" : shape == 6 ? ",{}" : ",{\"partition\":1,\"next\":5}");
  }
  put_text("]}");
}

static void honest_messages_are_accepted(void **state)
{
  struct query q;

  (void)state;
  for (size_t size = 1 << 10; size <= WIRE_VALUE_MAX; size *= 16) {
    for (int shape = 0; shape < SHAPES; shape++) {
      for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
        start();
        if (format == WIRE_JSON)
          put_json_shape(shape, size);
        else
          put_protobuf_shape(shape, size);
        if (decode_query(format, &q) != ERR_OK)
          fail_msg("shape %d of %zu bytes in format %d: %s", shape, size, format, err_message());
        assert_true(q.vector.n + q.n_exclude + q.n_at_least > 0);
      }
    }
  }
}

static void an_item_of_many_small_parts_is_accepted(void **state)
{
  char entry[8];

  (void)state;
  for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
    start();
    if (format == WIRE_JSON)
      put_text("{\"parts\":{");
    for (int i = 0; i < WIRE_PARTS_MAX; i++) {
      snprintf(entry, sizeof entry, "\x0a\x02%02x", (unsigned)i);
      if (format == WIRE_PROTOBUF)
        put_field(1, entry, 4);
      else {
        put_text(i ? ",\"" : "\"");
        put(entry + 2, 2);
        put_text("\":{}");
      }
    }
    if (format == WIRE_JSON)
      put_text("}}");
    assert_ok(decode_item(format));
  }
}

/* ---- Limits of a query's fields ---- */

/* Build a query with one text of `n` bytes. */
static void put_long_text(enum wire_format format, unsigned id, const char *name, size_t n)
{
  static char text[4096];

  memset(text, 'x', n);
  start();
  if (format == WIRE_PROTOBUF) {
    put_field(id, text, n);
  } else {
    put_text("{\"");
    put_text(name);
    put_text("\":\"");
    put(text, n);
    put_text("\"}");
  }
}

static void texts_of_a_query_have_a_length_and_long_ones_are_not_echoed(void **state)
{
  static const struct {
    unsigned id;
    const char *name;
    size_t most;
  } texts[] = { { 1, "id", QUERY_ID_MAX }, { 2, "space", SPACE_NAME_MAX }, { 4, "method", QUERY_METHOD_MAX } };
  char sentence[128];
  struct query q;

  (void)state;
  for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
      put_long_text(format, texts[i].id, texts[i].name, texts[i].most);
      assert_ok(decode_query(format, &q));
      assert_int_equal(q.id.n + q.space.n + q.method.n, texts[i].most);
      put_long_text(format, texts[i].id, texts[i].name, texts[i].most + 1);
      snprintf(sentence, sizeof sentence, "%s: %zu bytes, at most %zu", texts[i].name, texts[i].most + 1,
               texts[i].most);
      assert_refused_query(format, sentence, "", "", "");
    }
  }
}

static void put_lists(enum wire_format format, bool is_exclude, size_t n)
{
  start();
  if (format == WIRE_JSON)
    put_text(is_exclude ? "{\"id\":\"q\",\"exclude\":[" : "{\"id\":\"q\",\"at_least\":[");
  else
    put_text("\x0a\x01q");
  for (size_t i = 0; i < n; i++) {
    if (format == WIRE_PROTOBUF)
      put_field(is_exclude ? 9 : 10, "\x08\x01", 2);
    else
      put_text(is_exclude ? i ? ",\"abc\"" : "\"abc\"" : i ? ",{}" : "{}");
  }
  if (format == WIRE_JSON)
    put_text("]}");
}

static void lists_of_a_query_have_a_length(void **state)
{
  struct query q;

  (void)state;
  for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
    put_lists(format, true, QUERY_EXCLUDE_MAX);
    assert_ok(decode_query(format, &q));
    assert_int_equal(q.n_exclude, QUERY_EXCLUDE_MAX);
    put_lists(format, true, QUERY_EXCLUDE_MAX + 1);
    assert_refused_query(format, "exclude: 100001 elements, at most 100000", "q", "", "");
    put_lists(format, false, QUERY_AT_LEAST_MAX);
    assert_ok(decode_query(format, &q));
    assert_int_equal(q.n_at_least, QUERY_AT_LEAST_MAX);
    put_lists(format, false, QUERY_AT_LEAST_MAX + 1);
    assert_refused_query(format, "at_least: 4097 elements, at most 4096", "q", "", "");
  }
}

static void a_zero_in_a_text_is_refused_by_name_and_the_query_identified(void **state)
{
  (void)state;
  start();
  put("\x12\x07"
      "books\0x\x0a\x01q\x62\x01t",
      15);
  assert_refused_query(WIRE_PROTOBUF, "space: text with a zero character", "q", "", "t");
  start();
  put("\x0a\x03"
      "a\0b\x12\x01s\x62\x01t",
      11);
  assert_refused_query(WIRE_PROTOBUF, "id: text with a zero character", "", "s", "t");
  start();
  put("\x22\x01\0\x0a\x01q\x12\x01s\x62\x01t", 12);
  assert_refused_query(WIRE_PROTOBUF, "method: text with a zero character", "q", "s", "t");
  start();
  put("\x62\x02t\0\x0a\x01q\x12\x01s", 10);
  assert_refused_query(WIRE_PROTOBUF, "reply_topic: text with a zero character", "q", "s", "");
}

/* A wrong field followed by bytes that are no message: the whole is no message. */
static void bytes_that_are_no_message_are_not_answered(void **state)
{
  struct query q = { 0 };

  (void)state;
  start();
  put("\x0a\x03"
      "a\0b\x0a",
      6);
  assert_fails(decode_query(WIRE_PROTOBUF, &q), ERR_WIRE, "not a protobuf message");
}

static int free_region(void **state)
{
  (void)state;
  region_fini(&region);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(merged_fields_take_little_memory),
    cmocka_unit_test(a_field_that_occurs_twice_is_refused_by_name),
    cmocka_unit_test(a_field_of_an_item_that_occurs_twice_is_refused_by_name),
    cmocka_unit_test(a_number_may_occur_twice),
    cmocka_unit_test(a_list_in_pieces_takes_memory_once),
    cmocka_unit_test(a_query_that_takes_too_much_memory_is_refused_and_identified),
    cmocka_unit_test(an_item_that_takes_too_much_memory_is_refused),
    cmocka_unit_test(a_refused_item_leaves_the_region_as_it_was),
    cmocka_unit_test(a_decoded_item_keeps_only_its_parts),
    cmocka_unit_test(a_smaller_limit_of_the_region_holds),
    cmocka_unit_test(honest_messages_are_accepted),
    cmocka_unit_test(an_item_of_many_small_parts_is_accepted),
    cmocka_unit_test(texts_of_a_query_have_a_length_and_long_ones_are_not_echoed),
    cmocka_unit_test(lists_of_a_query_have_a_length),
    cmocka_unit_test(a_zero_in_a_text_is_refused_by_name_and_the_query_identified),
    cmocka_unit_test(bytes_that_are_no_message_are_not_answered),
  };

  return cmocka_run_group_tests(tests, NULL, free_region);
}
