/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format: items, queries and answers in protobuf and JSON, wrong fields, and damaged bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>

#include "ingest/message_field.h"
#include "ingest/numbers.h"
#include "ingest/wire.h"
#include "ingest/wire_message.h"
#include "tests/support/dice.h"

enum { ROUNDS = 200 };

static struct region region, scratch;

/* Copy bytes to a block of exactly their size. The sanitizer then sees a read past the end. */
static uint8_t *exact_copy(struct span bytes)
{
  uint8_t *copy = malloc(bytes.n ? bytes.n : 1);

  assert_non_null(copy);
  if (bytes.n)
    memcpy(copy, bytes.p, bytes.n);
  return copy;
}

/* Decode from an exact block, then overwrite and free it: the result must borrow nothing from it. */
static err_code_t decode_item(struct span value, enum wire_format format, struct item_change *out)
{
  uint8_t *copy = exact_copy(value);
  err_code_t err = wire_decode_item(span_of(copy, value.n), format, &region, out);

  memset(copy, 0xa5, value.n);
  free(copy);
  return err;
}

static err_code_t decode_query(struct span value, enum wire_format format, struct query *out)
{
  uint8_t *copy = exact_copy(value);
  err_code_t err = wire_decode_query(span_of(copy, value.n), format, &region, out);

  memset(copy, 0xa5, value.n);
  free(copy);
  return err;
}

static void *zeros(size_t n)
{
  void *p;

  assert_int_equal(region_array(&scratch, n, 1, &p), ERR_OK);
  return p;
}

static struct span pack(const ProtobufCMessage *message)
{
  size_t n = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = zeros(n);

  protobuf_c_message_pack(message, bytes);
  return span_of(bytes, n);
}

/* ---- Random messages ---- */

static struct floats roll_floats(struct dice *d)
{
  size_t n = dice_below(d, 3) == 0 ? 0 : 1 + dice_below(d, 70);
  float *v = zeros(n * sizeof *v);

  dice_fill(d, v, n, dice_below(d, 2) ? 1.0f : 1e30f);
  return (struct floats){ v, n };
}

static struct span roll_bytes(struct dice *d, size_t most)
{
  size_t n = dice_below(d, most + 1);
  uint8_t *bytes = zeros(n);

  for (size_t i = 0; i < n; i++)
    bytes[i] = (uint8_t)dice_u64(d);
  return span_of(bytes, n);
}

/* Make a text of 1..most bytes, without a zero byte: plain, or with characters of up to four bytes. */
static struct span roll_text(struct dice *d, size_t most)
{
  static const char *const characters[] = { "a", "Z", "\"", "\\", "\n", " ", "\xc3\xbc", "\xe2\x82\xac",
                                            "\xf0\x9f\x90\x9f" };
  size_t n = 0, want = 1 + dice_below(d, most);
  char *text = zeros(most + 8);

  while (n < want) {
    const char *c = characters[dice_below(d, sizeof characters / sizeof characters[0])];
    if (n + strlen(c) > most)
      c = "x";
    memcpy(text + n, c, strlen(c));
    n += strlen(c);
  }
  return span_of(text, n);
}

static struct item_change roll_item(struct dice *d)
{
  struct item_change change = { .n_parts = dice_below(d, 5) };

  change.parts = zeros(change.n_parts * sizeof *change.parts);
  for (size_t i = 0; i < change.n_parts; i++) {
    struct part *part = &change.parts[i];
    struct span name = roll_text(d, SPACE_NAME_MAX - 1);
    char *unique = zeros(name.n + 2);
    unique[0] = (char)('0' + i);
    memcpy(unique + 1, name.p, name.n);
    part->space = span_of(unique, name.n + 1);
    part->vector = roll_floats(d);
    part->components = roll_floats(d);
    part->item_gate = roll_floats(d);
    part->codes = roll_bytes(d, 40);
  }
  return change;
}

static void assert_same_floats(struct floats a, struct floats b)
{
  assert_int_equal(a.n, b.n);
  if (a.n)
    assert_memory_equal(a.v, b.v, a.n * sizeof *a.v);
}

static void assert_same_span(struct span a, struct span b)
{
  assert_true(span_equal(a, b));
}

static void assert_same_parts(const struct item_change *a, const struct item_change *b)
{
  assert_int_equal(a->n_parts, b->n_parts);
  for (size_t i = 0; i < a->n_parts; i++) {
    assert_same_span(a->parts[i].space, b->parts[i].space);
    assert_same_floats(a->parts[i].vector, b->parts[i].vector);
    assert_same_floats(a->parts[i].components, b->parts[i].components);
    assert_same_floats(a->parts[i].item_gate, b->parts[i].item_gate);
    assert_same_span(a->parts[i].codes, b->parts[i].codes);
  }
}

/* Make the protobuf message of a query. */
static Sluice__V1__Vector *vector_message(struct floats floats, bool as_data)
{
  Sluice__V1__Vector *vector = zeros(sizeof *vector);

  if (floats.n == 0)
    return NULL;
  sluice__v1__vector__init(vector);
  if (as_data) {
    vector->data = (ProtobufCBinaryData){ floats.n * 4, zeros(floats.n * 4) };
    numbers_encode_f32(floats.v, floats.n, vector->data.data);
  } else {
    vector->values = (float *)floats.v;
    vector->n_values = floats.n;
  }
  return vector;
}

static char *text_of(struct span text)
{
  char *copy = zeros(text.n + 1);

  if (text.n)
    memcpy(copy, text.p, text.n);
  return copy;
}

static Sluice__V1__Query *query_message(const struct query *from, bool as_data)
{
  Sluice__V1__Query *q = zeros(sizeof *q);

  sluice__v1__query__init(q);
  q->id = text_of(from->id);
  q->space = text_of(from->space);
  q->method = text_of(from->method);
  q->reply_topic = text_of(from->reply_topic);
  q->k = from->k;
  q->vector = vector_message(from->vector, as_data);
  q->components = vector_message(from->components, as_data);
  q->query_gate = vector_message(from->query_gate, as_data);
  q->n_exclude = from->n_exclude;
  q->exclude = zeros(from->n_exclude * sizeof *q->exclude);
  for (size_t i = 0; i < from->n_exclude; i++)
    q->exclude[i] = (ProtobufCBinaryData){ from->exclude[i].n, (uint8_t *)from->exclude[i].p };
  q->n_at_least = from->n_at_least;
  q->at_least = zeros(from->n_at_least * sizeof *q->at_least);
  for (size_t i = 0; i < from->n_at_least; i++) {
    q->at_least[i] = zeros(sizeof **q->at_least);
    sluice__v1__position__init(q->at_least[i]);
    q->at_least[i]->partition = from->at_least[i].partition;
    q->at_least[i]->next = from->at_least[i].next;
  }
  q->user_id = from->user_id;
  if (from->has_user_id)
    message_mark(&q->base, "user_id");
  q->deadline_unix_ms = from->deadline_unix_ms;
  if (from->has_deadline)
    message_mark(&q->base, "deadline_unix_ms");
  return q;
}

static struct query roll_query(struct dice *d)
{
  struct query q = { .id = roll_text(d, 40), .space = roll_text(d, 20), .method = roll_text(d, 20) };

  q.k = (uint32_t)dice_u64(d) >> dice_below(d, 32);
  q.vector = roll_floats(d);
  q.components = roll_floats(d);
  q.query_gate = roll_floats(d);
  q.n_exclude = dice_below(d, 5);
  q.exclude = zeros(q.n_exclude * sizeof *q.exclude);
  for (size_t i = 0; i < q.n_exclude; i++) {
    q.exclude[i] = dice_below(d, 2) ? roll_text(d, 30) : roll_bytes(d, 30);
    if (q.exclude[i].n == 0)
      q.exclude[i] = span_of_str("x");
  }
  q.n_at_least = dice_below(d, 4);
  q.at_least = zeros(q.n_at_least * sizeof *q.at_least);
  for (size_t i = 0; i < q.n_at_least; i++)
    q.at_least[i] = (struct position){ (int32_t)dice_below(d, 100), (int64_t)(dice_u64(d) >> 1) };
  q.has_user_id = dice_below(d, 2);
  q.user_id = q.has_user_id ? (int64_t)dice_u64(d) : 0;
  q.has_deadline = dice_below(d, 2);
  q.deadline_unix_ms = q.has_deadline ? (int64_t)dice_u64(d) : 0;
  if (dice_below(d, 2))
    q.reply_topic = span_of_str("Answers_of.team-7");
  return q;
}

static void assert_same_query(const struct query *a, const struct query *b)
{
  assert_same_span(a->id, b->id);
  assert_same_span(a->space, b->space);
  assert_same_span(a->method, b->method);
  assert_int_equal(a->k, b->k);
  assert_same_floats(a->vector, b->vector);
  assert_same_floats(a->components, b->components);
  assert_same_floats(a->query_gate, b->query_gate);
  assert_int_equal(a->has_user_id, b->has_user_id);
  assert_true(a->user_id == b->user_id);
  assert_int_equal(a->n_exclude, b->n_exclude);
  for (size_t i = 0; i < a->n_exclude; i++)
    assert_same_span(a->exclude[i], b->exclude[i]);
  assert_int_equal(a->n_at_least, b->n_at_least);
  for (size_t i = 0; i < a->n_at_least; i++)
    assert_true(a->at_least[i].partition == b->at_least[i].partition && a->at_least[i].next == b->at_least[i].next);
  assert_int_equal(a->has_deadline, b->has_deadline);
  assert_true(a->deadline_unix_ms == b->deadline_unix_ms);
  assert_same_span(a->reply_topic, b->reply_topic);
}

/* ---- Formats ---- */

static void the_header_decides_the_format_and_then_the_first_byte(void **state)
{
  struct span json = span_of_str("{}"), other = span_of_str("\x0a"), none = { 0 };
  (void)state;

  assert_int_equal(wire_format_of(json, none), WIRE_JSON);
  assert_int_equal(wire_format_of(other, none), WIRE_PROTOBUF);
  assert_int_equal(wire_format_of(none, none), WIRE_PROTOBUF);
  assert_int_equal(wire_format_of(other, span_of_str("application/json")), WIRE_JSON);
  assert_int_equal(wire_format_of(other, span_of_str("Application/JSON; charset=utf-8")), WIRE_JSON);
  assert_int_equal(wire_format_of(json, span_of_str("application/x-protobuf")), WIRE_PROTOBUF);
  assert_int_equal(wire_format_of(json, span_of_str("application/protobuf")), WIRE_PROTOBUF);
  assert_int_equal(wire_format_of(json, span_of_str("application/octet-stream")), WIRE_JSON);
  assert_int_equal(wire_format_of(other, span_of_str("application/jsonx")), WIRE_PROTOBUF);
  assert_string_equal(wire_content_type(WIRE_JSON), "application/json");
  assert_string_equal(wire_content_type(WIRE_PROTOBUF), "application/x-protobuf");
}

/* ---- Items ---- */

static void items_come_back_from_both_formats(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < ROUNDS; round++) {
    region_reset(&region);
    region_reset(&scratch);
    struct item_change item = roll_item(&d);
    for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
      struct item_change back = { .offset = 7 };
      struct span value;
      assert_int_equal(wire_encode_item(&item, format, &region, &value), ERR_OK);
      assert_int_equal(decode_item(value, format, &back), ERR_OK);
      assert_same_parts(&item, &back);
      assert_int_equal(back.offset, 7);
      if (format == WIRE_JSON || value.n > 0)
        assert_int_equal(wire_format_of(value, (struct span){ 0 }), format);
    }
  }
}

static void encoded_items_look_like_this(void **state)
{
  float v[] = { 1.0f, 0.1f, -1e-20f };
  uint8_t codes[] = { 3, 255 };
  struct part parts[] = { { .space = span_of_str("books"), .vector = { v, 3 } },
                          { .space = span_of_str("c"), .codes = span_of(codes, 2) } };
  struct item_change item = { .parts = parts, .n_parts = 2 };
  struct span value;
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_encode_item(&item, WIRE_JSON, &region, &value), ERR_OK);
  assert_string_equal((const char *)value.p, "{\"parts\":{\"books\":{\"vector\":[1.0,0.100000001,-9.99999968e-21]},"
                                             "\"c\":{\"codes\":[3,255]}}}");
  assert_int_equal(wire_encode_item(&item, WIRE_PROTOBUF, &region, &value), ERR_OK);
  static const uint8_t expected[] = "\x0a\x19\x0a\x05" "books" "\x12\x10\x0a\x0e\x12\x0c"
                                    "\x00\x00\x80\x3f\xcd\xcc\xcc\x3d\x08\xe5\x3c\x9e"
                                    "\x0a\x09\x0a\x01" "c" "\x12\x04\x22\x02\x03\xff";
  assert_int_equal(value.n, sizeof expected - 1);
  assert_memory_equal(value.p, expected, value.n);
}

static void an_empty_protobuf_value_is_an_item_without_parts(void **state)
{
  struct item_change item = { .n_parts = 9 };
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_decode_item((struct span){ 0 }, WIRE_PROTOBUF, &region, &item), ERR_OK);
  assert_int_equal(item.n_parts, 0);
  assert_int_equal(wire_decode_item((struct span){ 0 }, WIRE_JSON, &region, &item), ERR_WIRE);
  assert_int_equal(decode_item(span_of_str("{}"), WIRE_JSON, &item), ERR_OK);
  assert_int_equal(item.n_parts, 0);
}

/* An item as protobuf's own JSON mapping writes it: lowerCamelCase, with data and codes in Base64. */
static void the_json_of_protobuf_libraries_is_read(void **state)
{
  const char *text = "{\n  \"parts\": {\n    \"films\": {\n      \"codes\": \"AAH/\"\n    },\n    \"books\": {\n"
                     "      \"vector\": {\n        \"data\": \"AADAPwAAAMA=\"\n      },\n      \"itemGate\": {\n"
                     "        \"type\": \"F16\",\n        \"data\": \"ADwAwA==\"\n      },\n      \"components\": {\n"
                     "        \"values\": [\n          0.5,\n          1.0\n        ]\n      }\n    }\n  }\n}";
  struct item_change item;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_item(span_of_str(text), WIRE_JSON, &item), ERR_OK);
  assert_int_equal(item.n_parts, 2);
  assert_same_span(item.parts[0].codes, span_of("\x00\x01\xff", 3));
  assert_same_span(item.parts[1].space, span_of_str("books"));
  assert_same_floats(item.parts[1].vector, (struct floats){ (float[]){ 1.5f, -2.0f }, 2 });
  assert_same_floats(item.parts[1].item_gate, (struct floats){ (float[]){ 1.0f, -2.0f }, 2 });
  assert_same_floats(item.parts[1].components, (struct floats){ (float[]){ 0.5f, 1.0f }, 2 });
}

/* The same item as Python's protobuf encodes it, with `values` packed. */
static void the_bytes_of_protobuf_libraries_are_read(void **state)
{
  static const uint8_t bytes[] = "\x0a\x2e\x0a\x05" "books" "\x12\x25\x0a\x0a\x12\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0"
                                 "\x12\x0a\x1a\x08\x00\x00\x00\x3f\x00\x00\x80\x3f"
                                 "\x1a\x08\x08\x01\x12\x04\x00\x3c\x00\xc0\x22\x01\x07";
  struct item_change item;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_item(span_of(bytes, sizeof bytes - 1), WIRE_PROTOBUF, &item), ERR_OK);
  assert_int_equal(item.n_parts, 1);
  assert_same_floats(item.parts[0].vector, (struct floats){ (float[]){ 1.5f, -2.0f }, 2 });
  assert_same_floats(item.parts[0].components, (struct floats){ (float[]){ 0.5f, 1.0f }, 2 });
  assert_same_floats(item.parts[0].item_gate, (struct floats){ (float[]){ 1.0f, -2.0f }, 2 });
  assert_same_span(item.parts[0].codes, span_of("\x07", 1));
}

static void unpacked_values_and_unknown_fields_are_read(void **state)
{
  static const uint8_t bytes[] = "\x0a\x13\x0a\x01" "s" "\x12\x0e\x0a\x0c"
                                 "\x1d\x00\x00\x80\x3f" "\x38\x05" "\x1d\x00\x00\x00\x40" "\x7a\x02xy";
  struct item_change item;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_item(span_of(bytes, sizeof bytes - 1), WIRE_PROTOBUF, &item), ERR_OK);
  assert_same_floats(item.parts[0].vector, (struct floats){ (float[]){ 1.0f, 2.0f }, 2 });
}

static void assert_bad_item(struct span value, enum wire_format format, err_code_t code, const char *sentence)
{
  struct item_change item = { .n_parts = 77 };

  region_reset(&region);
  assert_int_equal(decode_item(value, format, &item), code);
  assert_string_equal(err_message(), sentence);
  assert_int_equal(item.n_parts, 77);
}

static void assert_bad_json_item(const char *text, const char *sentence)
{
  assert_bad_item(span_of_str(text), WIRE_JSON, ERR_ITEM, sentence);
}

static void wrong_items_are_refused_by_name(void **state)
{
  char text[256];
  (void)state;

  assert_bad_json_item("{\"parts\":{\"books\":{\"vector\":{\"data\":\"AADA\"}}}}",
                       "parts[\"books\"].vector.data has 3 bytes, not a multiple of 4 (F32)");
  assert_bad_json_item("{\"parts\":{\"books\":{\"components\":{\"type\":\"F16\",\"data\":\"AADA\"}}}}",
                       "parts[\"books\"].components.data has 3 bytes, not a multiple of 2 (F16)");
  assert_bad_json_item("{\"parts\":{\"books\":{\"item_gate\":{\"type\":\"BF16\",\"data\":\"gD+Afw==\"}}}}",
                       "parts[\"books\"].item_gate: number 1 is not finite");
  assert_bad_json_item("{\"parts\":{\"books\":{\"vector\":{\"type\":\"F16\",\"data\":\"AHw=\"}}}}",
                       "parts[\"books\"].vector: number 0 is not finite");
  assert_bad_json_item("{\"parts\":{\"books\":{\"vector\":{\"values\":[1],\"data\":\"AACAPw==\"}}}}",
                       "parts[\"books\"].vector has both data and values");
  assert_bad_json_item("{\"parts\":{\"books\":{\"vectr\":[1]}}}", "parts[\"books\"]: unknown field \"vectr\"");
  assert_bad_json_item("{\"part\":{}}", "unknown field \"part\"");
  assert_bad_json_item("{\"parts\":{\"books\":{\"vector\":[1,1e39]}}}",
                       "parts[\"books\"].vector[1]: 1e+39 does not fit in 32 bits");
  assert_bad_json_item("{\"parts\":{\"books\":{\"codes\":[1,300]}}}",
                       "parts[\"books\"].codes[1]: 300 is not between 0 and 255");
  assert_bad_json_item("{\"parts\":{\"\":{}}}", "parts[\"\"]: the name of a space has 1 to 64 bytes, not 0");
  snprintf(text, sizeof text, "{\"parts\":{\"%065d\":{}}}", 0);
  assert_bad_json_item(text, "parts[\"00000000000000000000000000000000000000000000000000000000000000000\"]: "
                             "the name of a space has 1 to 64 bytes, not 65");
  snprintf(text, sizeof text, "{\"parts\":{\"%064d\":{}}}", 0);
  struct item_change item;
  assert_int_equal(decode_item(span_of_str(text), WIRE_JSON, &item), ERR_OK);
}

static Sluice__V1__Item *item_message(size_t n)
{
  Sluice__V1__Item *item = zeros(sizeof *item);

  sluice__v1__item__init(item);
  item->n_parts = n;
  item->parts = zeros(n * sizeof *item->parts);
  for (size_t i = 0; i < n; i++) {
    item->parts[i] = zeros(sizeof **item->parts);
    sluice__v1__item__parts_entry__init(item->parts[i]);
    item->parts[i]->key = zeros(24);
    snprintf(item->parts[i]->key, 24, "s%zu", i);
    item->parts[i]->value = zeros(sizeof *item->parts[i]->value);
    sluice__v1__part__init(item->parts[i]->value);
  }
  return item;
}

static void wrong_protobuf_items_are_refused_by_name(void **state)
{
  float nan_at_17[20] = { [17] = NAN };
  (void)state;

  region_reset(&scratch);
  Sluice__V1__Item *item = item_message(3);
  item->parts[1]->value->vector = vector_message((struct floats){ nan_at_17, 20 }, true);
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"s1\"].vector: number 17 is not finite");
  item->parts[1]->value->vector = vector_message((struct floats){ nan_at_17, 20 }, false);
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"s1\"].vector: number 17 is not finite");
  item->parts[1]->value->vector->n_values = 2;
  item->parts[1]->value->vector->data = (ProtobufCBinaryData){ 3, zeros(3) };
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"s1\"].vector has both data and values");
  item->parts[1]->value->vector->n_values = 0;
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM,
                  "parts[\"s1\"].vector.data has 3 bytes, not a multiple of 4 (F32)");
  item->parts[1]->value->vector->type = 7;
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM,
                  "parts[\"s1\"].vector.type: 7 is not F32 (0), F16 (1) or BF16 (2)");
  item->parts[1]->value->vector = NULL;

  item->parts[2]->key = (char *)"s0";
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"s0\"]: the space occurs twice");
  item->parts[2]->key = (char *)"\xff";
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM, "parts[\"\\xff\"]: the name of a space must be UTF-8");
  item->parts[2]->key = (char *)"";
  assert_bad_item(pack(&item->base), WIRE_PROTOBUF, ERR_ITEM,
                  "parts[\"\"]: the name of a space has 1 to 64 bytes, not 0");

  struct item_change change;
  assert_int_equal(decode_item(pack(&item_message(WIRE_PARTS_MAX)->base), WIRE_PROTOBUF, &change), ERR_OK);
  assert_bad_item(pack(&item_message(WIRE_PARTS_MAX + 1)->base), WIRE_PROTOBUF, ERR_ITEM,
                  "parts: 257 elements, at most 256");
}

static void bytes_that_are_no_item_are_refused(void **state)
{
  static const struct {
    const char *p;
    size_t n;
    const char *sentence;
  } cases[] = {
    { "\x0a", 1, "not a protobuf message of type sluice.v1.Item" },
    { "\x0a\xff\xff\xff\xff\x0f", 6, "not a protobuf message of type sluice.v1.Item" },
    { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "not a protobuf message of type sluice.v1.Item" },
    { "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, "not a protobuf message of type sluice.v1.Item" },
    { "\x08\x01", 2, "not a protobuf message of type sluice.v1.Item" },
    { "\x00\x00\x00\x00\x07\x00", 6,
      "not a protobuf message of type sluice.v1.Item (a schema registry's framing is not understood: send the bare "
      "message)" },
    { "\x0a\x02\x12\x01", 4, "not a protobuf message of type sluice.v1.Item.PartsEntry" },
    { "\x0b\x0c", 2, "not a protobuf message of type sluice.v1.Item" },
    { "{\"parts\":{}}", 12, "not a protobuf message of type sluice.v1.Item" },
  };
  (void)state;

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_bad_item(span_of(cases[i].p, cases[i].n), WIRE_PROTOBUF, ERR_WIRE, cases[i].sentence);
  assert_bad_item(span_of("\x0a\x05\x0a\x03" "a\0b", 7), WIRE_PROTOBUF, ERR_ITEM,
                  "parts.key: text with a zero character");
  size_t n = WIRE_VALUE_MAX + 1;
  uint8_t *large = calloc(n, 1);
  assert_non_null(large);
  for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++)
    assert_bad_item(span_of(large, n), format, ERR_WIRE,
                    "4194305 bytes are more than the limit of 4194304 for a message");
  free(large);
}

static void map_entries_without_key_or_value_are_safe(void **state)
{
  struct item_change item;
  (void)state;

  region_reset(&region);
  assert_int_equal(decode_item(span_of("\x0a\x03\x0a\x01s", 5), WIRE_PROTOBUF, &item), ERR_OK);
  assert_int_equal(item.n_parts, 1);
  assert_same_span(item.parts[0].space, span_of_str("s"));
  assert_int_equal(item.parts[0].vector.n + item.parts[0].codes.n, 0);
  assert_bad_item(span_of("\x0a\x00", 2), WIRE_PROTOBUF, ERR_ITEM,
                  "parts[\"\"]: the name of a space has 1 to 64 bytes, not 0");
}

/* ---- Queries ---- */

/* Print a query as JSON, field by field. This is the oracle; it does not use the code under test. */
static void print_json_text(FILE *f, const char *name, struct span text)
{
  fprintf(f, ",\"%s\":\"", name);
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] == '"' || text.p[i] == '\\' || text.p[i] < 0x20)
      fprintf(f, "\\u%04x", text.p[i]);
    else
      fputc(text.p[i], f);
  }
  fputc('"', f);
}

static void print_json_floats(FILE *f, const char *name, struct floats floats)
{
  fprintf(f, ",\"%s\":[", name);
  for (size_t i = 0; i < floats.n; i++)
    fprintf(f, "%s%.9g", i ? ", " : "", (double)floats.v[i]);
  fputc(']', f);
}

static struct span print_json_query(const struct query *q, bool is_camel)
{
  char *buffer = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&buffer, &n);

  assert_non_null(f);
  fprintf(f, "{\"k\":%u", q->k);
  print_json_text(f, "id", q->id);
  print_json_text(f, "space", q->space);
  print_json_text(f, "method", q->method);
  print_json_text(f, is_camel ? "replyTopic" : "reply_topic", q->reply_topic);
  print_json_floats(f, "vector", q->vector);
  print_json_floats(f, "components", q->components);
  print_json_floats(f, is_camel ? "queryGate" : "query_gate", q->query_gate);
  if (q->has_user_id)
    fprintf(f, is_camel ? ",\"userId\":\"%lld\"" : ",\"user_id\":%lld", (long long)q->user_id);
  if (q->has_deadline)
    fprintf(f, is_camel ? ",\"deadlineUnixMs\":\"%lld\"" : ",\"deadline_unix_ms\":%lld",
            (long long)q->deadline_unix_ms);
  fprintf(f, ",\"%s\":[", is_camel ? "atLeast" : "at_least");
  for (size_t i = 0; i < q->n_at_least; i++)
    fprintf(f, "%s{\"partition\":%d,\"next\":%lld}", i ? "," : "", q->at_least[i].partition,
            (long long)q->at_least[i].next);
  fprintf(f, "]}");
  fclose(f);
  struct span text;
  assert_int_equal(region_copy(&scratch, span_of(buffer, n), &text), ERR_OK);
  free(buffer);
  return text;
}

static void queries_mean_the_same_in_both_formats(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < ROUNDS; round++) {
    region_reset(&region);
    region_reset(&scratch);
    struct query q = roll_query(&d), back;
    for (int as_data = 0; as_data < 2; as_data++) {
      assert_int_equal(decode_query(pack(&query_message(&q, as_data)->base), WIRE_PROTOBUF, &back), ERR_OK);
      assert_same_query(&q, &back);

      struct span text; /* the JSON that our own writer makes, including exclude */
      const ProtobufCMessage *message = &query_message(&q, as_data)->base;
      assert_int_equal(wire_message_write(message, WIRE_JSON, NULL, &region, &text), ERR_OK);
      assert_int_equal(decode_query(text, WIRE_JSON, &back), ERR_OK);
      assert_same_query(&q, &back);
    }
    q.n_exclude = 0;
    for (int is_camel = 0; is_camel < 2; is_camel++) {
      assert_int_equal(decode_query(print_json_query(&q, is_camel), WIRE_JSON, &back), ERR_OK);
      assert_same_query(&q, &back);
    }
  }
}

static void an_empty_query_has_nothing(void **state)
{
  struct query q, empty = { 0 };
  (void)state;

  memset(&q, 0xff, sizeof q);
  region_reset(&region);
  assert_int_equal(wire_decode_query((struct span){ 0 }, WIRE_PROTOBUF, &region, &q), ERR_OK);
  assert_same_query(&q, &empty);
  memset(&q, 0xff, sizeof q);
  assert_int_equal(decode_query(span_of_str("{}"), WIRE_JSON, &q), ERR_OK);
  assert_same_query(&q, &empty);
}

/* Assert that the query is refused with this message, and that its id, space and reply topic are still known. */
static void assert_bad_query(struct span value, enum wire_format format, const char *sentence, const char *id,
                             const char *reply_topic)
{
  struct query q;

  memset(&q, 0xff, sizeof q);
  region_reset(&region);
  assert_int_equal(decode_query(value, format, &q), ERR_QUERY);
  assert_string_equal(err_message(), sentence);
  assert_same_span(q.id, span_of_str(id));
  assert_same_span(q.reply_topic, span_of_str(reply_topic));
  assert_int_equal(q.k + q.vector.n + q.n_exclude + q.n_at_least + q.method.n, 0);
}

static void wrong_json_queries_are_refused_by_name_and_identified(void **state)
{
  static const char *const cases[][2] = {
    { "\"k\":-3", "k: -3 is not between 0 and 4294967295" },
    { "\"vector\":{\"data\":\"AAAAAAAA\"}", "vector.data has 6 bytes, not a multiple of 4 (F32)" },
    { "\"vector\":[1,\"x\"]", "vector[1]: expected a number, not text" },
    { "\"components\":{\"type\":1,\"data\":\"AH4=\"}", "components: number 0 is not finite" },
    { "\"query_gate\":{\"values\":[1],\"data\":\"AAAAAA==\"}", "query_gate has both data and values" },
    { "\"filter\":{}", "unknown field \"filter\"" },
    { "\"exclude\":[\"a\",\"\"]", "exclude[1]: a key has 1 to 256 bytes, not 0" },
    { "\"at_least\":[{\"partition\":-1}]", "at_least[0].partition: -1 is negative" },
    { "\"at_least\":[{},{\"next\":-5}]", "at_least[1].next: -5 is negative" },
    { "\"user_id\":\"x\"", "user_id: expected an integer of at most 64 bits, not \"x\"" },
    { "\"method\":[]", "method: expected text, not a list" },
  };
  char text[256];
  (void)state;

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    snprintf(text, sizeof text, "{\"id\":\"q-\\u00fc\",%s,\"reply_topic\":\"team.answers\",\"space\":\"s\"}",
             cases[i][0]);
    assert_bad_query(span_of_str(text), WIRE_JSON, cases[i][1], "q-\xc3\xbc", "team.answers");
  }
  assert_bad_query(span_of_str("{\"id\":7,\"reply_topic\":\"t\"}"), WIRE_JSON,
                   "id: expected text, not an integer", "", "t");
  assert_bad_query(span_of_str("{\"id\":\"a\",\"reply_topic\":\"a b\"}"), WIRE_JSON,
                   "reply_topic: \"a b\" is not a topic name (1 to 249 of a-z A-Z 0-9 . _ -)", "a", "");
  assert_bad_query(span_of_str("{\"id\":\"a\",\"reply_topic\":\"..\"}"), WIRE_JSON,
                   "reply_topic: \"..\" is not a topic name (1 to 249 of a-z A-Z 0-9 . _ -)", "a", "");
}

static void topic_names_have_a_length(void **state)
{
  char text[300] = "{\"reply_topic\":\"";
  struct query q;
  (void)state;

  memset(text + 16, 't', 249);
  strcpy(text + 16 + 249, "\"}");
  region_reset(&region);
  assert_int_equal(decode_query(span_of_str(text), WIRE_JSON, &q), ERR_OK);
  assert_int_equal(q.reply_topic.n, 249);
  strcpy(text + 16 + 249, "t\"}");
  assert_int_equal(decode_query(span_of_str(text), WIRE_JSON, &q), ERR_QUERY);
}

static void wrong_protobuf_queries_are_refused_by_name_and_identified(void **state)
{
  float v[] = { 1.0f, INFINITY };
  struct query good = { .id = span_of_str("q"), .reply_topic = span_of_str("t") };
  (void)state;

  region_reset(&scratch);
  Sluice__V1__Query *q = query_message(&good, true);
  q->vector = vector_message((struct floats){ v, 2 }, true);
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "vector: number 1 is not finite", "q", "t");
  q->vector = NULL;
  q->method = (char *)"\xc3(";
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "method: \"\\xc3(\" is not UTF-8", "q", "t");
  q->method = (char *)"";
  q->space = (char *)"\xff";
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "space: \"\\xff\" is not UTF-8", "q", "t");
  q->space = (char *)"";
  q->id = (char *)"\xed\xa0\x80";
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "id: \"\\xed\\xa0\\x80\" is not UTF-8", "", "t");
  q->id = (char *)"q";
  q->reply_topic = (char *)"t/u";
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF,
                   "reply_topic: \"t/u\" is not a topic name (1 to 249 of a-z A-Z 0-9 . _ -)", "q", "");
  q->reply_topic = (char *)"t";
  ProtobufCBinaryData key = { 257, zeros(257) };
  q->exclude = &key;
  q->n_exclude = 1;
  assert_bad_query(pack(&q->base), WIRE_PROTOBUF, "exclude[0]: a key has 1 to 256 bytes, not 257", "q", "t");
}

static void bytes_that_are_no_query_leave_the_output_unchanged(void **state)
{
  static const char *const texts[] = { "{", "[]", "{\"id\":\"\\ud800\"}", "" };
  struct query q, before;
  (void)state;

  memset(&q, 0x5a, sizeof q);
  memcpy(&before, &q, sizeof q);
  region_reset(&region);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    assert_int_equal(decode_query(span_of_str(texts[i]), WIRE_JSON, &q), ERR_WIRE);
  assert_int_equal(decode_query(span_of("\x0a\x03" "a", 3), WIRE_PROTOBUF, &q), ERR_WIRE);
  assert_memory_equal(&q, &before, sizeof q);
}

/* ---- Answers ---- */

static struct answer sample_answer(void)
{
  static struct hit hits[] = { { { (const uint8_t *)"gimp", 4 }, 0.1f },
                               { { (const uint8_t *)"\xff\x00", 2 }, 0.0f },
                               { { (const uint8_t *)"\xc3\xbc", 2 }, -3.4028235e38f } };
  static const struct position watermark[] = { { 0, 17 }, { 1, 0 } };

  return (struct answer){
    .id = span_of_str("q1"),
    .space = span_of_str("books"),
    .method = { .name = "average", .args = { 4000 }, .n_args = 1 },
    .hits = hits,
    .n_hits = 3,
    .receipt = { .is_exact = false, .has_bound = true, .bound = 0.25f },
    .epoch = 12,
    .watermark = watermark,
    .n_watermark = 2,
    .counts = { 63000, 4000, 4000 },
    .queued_us = 512,
    .searched_us = 0,
  };
}

static void answers_look_like_this(void **state)
{
  struct answer answer = sample_answer();
  struct span text;
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_string_equal((const char *)text.p,
                      "{\"id\":\"q1\",\"space\":\"books\",\"method\":\"average(4000)\",\"hits\":["
                      "{\"key\":\"gimp\",\"score\":0.100000001},{\"key\":{\"base64\":\"/wA=\"},\"score\":0.0},"
                      "{\"key\":\"\xc3\xbc\",\"score\":-3.40282347e38}],"
                      "\"receipt\":{\"exact\":false,\"bound\":0.25},\"epoch\":12,"
                      "\"watermark\":[{\"partition\":0,\"next\":17},{\"partition\":1,\"next\":0}],"
                      "\"counts\":{\"items\":63000,\"scored\":4000,\"candidates\":4000},"
                      "\"times\":{\"queued_us\":512,\"searched_us\":0}}");

  answer.n_hits = answer.n_watermark = 0;
  answer.receipt = (struct receipt){ .is_exact = true };
  answer.method = (struct method){ .name = "two", .args = { 1, 2 }, .n_args = 2 };
  answer.id = span_of_str("");
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_string_equal((const char *)text.p,
                      "{\"space\":\"books\",\"method\":\"two(1,2)\",\"hits\":[],\"receipt\":{\"exact\":true},"
                      "\"epoch\":12,"
                      "\"counts\":{\"items\":63000,\"scored\":4000,\"candidates\":4000},"
                      "\"times\":{\"queued_us\":512,\"searched_us\":0}}");
}

static void error_answers_look_like_this(void **state)
{
  struct answer answer = { .id = span_of_str("q1"), .space = span_of_str("books"), .error = ANSWER_NOT_SEEN,
                           .error_message = "partition 0: \xff seen" };
  struct span text;
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &text), ERR_OK);
  assert_string_equal((const char *)text.p, "{\"id\":\"q1\",\"space\":\"books\","
                                            "\"error\":{\"code\":\"NOT_SEEN\",\"message\":\"partition 0: ? seen\"}}");

  assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &text), ERR_OK);
  Sluice__V1__Answer *back = sluice__v1__answer__unpack(NULL, text.n, text.p);
  assert_non_null(back);
  assert_string_equal(back->id, "q1");
  assert_int_equal(back->error->code, SLUICE__V1__ERROR__CODE__NOT_SEEN);
  assert_string_equal(back->error->message, "partition 0: ? seen");
  assert_null(back->receipt);
  assert_int_equal(back->n_hits, 0);
  sluice__v1__answer__free_unpacked(back, NULL);
}

static void answers_in_protobuf_unpack_to_the_same(void **state)
{
  struct answer answer = sample_answer();
  struct span bytes;
  (void)state;

  region_reset(&region);
  assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes), ERR_OK);
  Sluice__V1__Answer *back = sluice__v1__answer__unpack(NULL, bytes.n, bytes.p);
  assert_non_null(back);
  assert_string_equal(back->method, "average(4000)");
  assert_int_equal(back->n_hits, 3);
  assert_int_equal(back->hits[1]->key.len, 2);
  assert_memory_equal(back->hits[1]->key.data, "\xff\x00", 2);
  for (size_t i = 0; i < 3; i++)
    assert_memory_equal(&back->hits[i]->score, &answer.hits[i].score, 4);
  assert_false(back->receipt->exact);
  assert_true(message_has(&back->receipt->base, "bound") && back->receipt->bound == 0.25f);
  assert_true(back->epoch == 12 && back->n_watermark == 2 && back->watermark[0]->next == 17);
  assert_true(back->counts->items == 63000 && back->counts->candidates == 4000 && back->times->queued_us == 512);
  assert_null(back->error);
  sluice__v1__answer__free_unpacked(back, NULL);
}

static void a_bound_without_end_is_the_largest_number_and_no_bound_is_none(void **state)
{
  struct answer answer = sample_answer();
  struct span bytes;
  (void)state;

  region_reset(&region);
  for (int round = 0; round < 3; round++) {
    answer.receipt.has_bound = round < 2;
    answer.receipt.bound = round ? -INFINITY : INFINITY;
    assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes), ERR_OK);
    Sluice__V1__Answer *back = sluice__v1__answer__unpack(NULL, bytes.n, bytes.p);
    assert_non_null(back);
    assert_int_equal(message_has(&back->receipt->base, "bound"), round < 2);
    if (round < 2)
      assert_true(back->receipt->bound == (round ? -FLT_MAX : FLT_MAX));
    sluice__v1__answer__free_unpacked(back, NULL);
  }
  answer.receipt.has_bound = true;
  answer.receipt.bound = NAN;
  assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &bytes), ERR_WIRE);
}

static void scores_that_are_no_numbers_are_never_sent(void **state)
{
  const float bad[] = { INFINITY, -INFINITY, NAN };
  struct hit hit = { span_of_str("a"), 0 };
  struct answer answer = sample_answer();
  struct span bytes;
  (void)state;

  answer.hits = &hit;
  answer.n_hits = 1;
  region_reset(&region);
  for (size_t i = 0; i < 3; i++) {
    hit.score = bad[i];
    assert_int_equal(wire_encode_answer(&answer, WIRE_JSON, &region, &bytes), ERR_WIRE);
    assert_int_equal(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes), ERR_WIRE);
    assert_string_equal(err_message(), "the score of hit 0 is not finite");
  }
}

/* ---- Damaged bytes ---- */

static void try_all(struct span value)
{
  for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
    struct item_change item;
    struct query query;
    region_reset(&region);
    err_code_t of_item = decode_item(value, format, &item), of_query = decode_query(value, format, &query);
    assert_true(of_item == ERR_OK || of_item == ERR_WIRE || of_item == ERR_ITEM);
    assert_true(of_query == ERR_OK || of_query == ERR_WIRE || of_query == ERR_QUERY);
  }
}

static struct span roll_value(struct dice *d, enum wire_format format)
{
  struct span value;
  struct query query = roll_query(d);
  struct item_change item = roll_item(d);

  if (dice_below(d, 2))
    assert_int_equal(wire_encode_item(&item, format, &scratch, &value), ERR_OK);
  else
    assert_int_equal(wire_message_write(&query_message(&query, dice_below(d, 2))->base, format, NULL, &scratch, &value),
                     ERR_OK);
  return value;
}

static void messages_cut_at_any_byte_are_safe(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < 8; round++) {
    region_reset(&scratch);
    struct span value = roll_value(&d, round % 2 ? WIRE_JSON : WIRE_PROTOBUF);
    for (size_t n = 0; n < value.n && n < 1500; n++)
      try_all(span_of(value.p, n));
  }
}

static void cut_json_is_never_a_message(void **state)
{
  struct dice d = { dice_seed() };
  struct query q;
  (void)state;

  region_reset(&scratch);
  struct query from = roll_query(&d);
  struct span text = print_json_query(&from, false);
  for (size_t n = 0; n < text.n; n++) {
    region_reset(&region);
    assert_int_equal(decode_query(span_of(text.p, n), WIRE_JSON, &q), ERR_WIRE);
  }
}

static void messages_with_changed_bytes_are_safe(void **state)
{
  struct dice d = { dice_seed() };
  (void)state;

  for (int round = 0; round < 1500; round++) {
    region_reset(&scratch);
    struct span value = roll_value(&d, round % 2 ? WIRE_JSON : WIRE_PROTOBUF);
    uint8_t *bytes = exact_copy(value);
    for (size_t i = 0; value.n && i < 1 + dice_below(&d, 4); i++)
      bytes[dice_below(&d, value.n)] = (uint8_t)(dice_below(&d, 2) ? dice_u64(&d) : 1u << dice_below(&d, 8));
    try_all(span_of(bytes, value.n));
    free(bytes);
  }
}

static int free_regions(void **state)
{
  (void)state;
  region_fini(&region);
  region_fini(&scratch);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_header_decides_the_format_and_then_the_first_byte),
    cmocka_unit_test(items_come_back_from_both_formats),
    cmocka_unit_test(encoded_items_look_like_this),
    cmocka_unit_test(an_empty_protobuf_value_is_an_item_without_parts),
    cmocka_unit_test(the_json_of_protobuf_libraries_is_read),
    cmocka_unit_test(the_bytes_of_protobuf_libraries_are_read),
    cmocka_unit_test(unpacked_values_and_unknown_fields_are_read),
    cmocka_unit_test(wrong_items_are_refused_by_name),
    cmocka_unit_test(wrong_protobuf_items_are_refused_by_name),
    cmocka_unit_test(bytes_that_are_no_item_are_refused),
    cmocka_unit_test(map_entries_without_key_or_value_are_safe),
    cmocka_unit_test(queries_mean_the_same_in_both_formats),
    cmocka_unit_test(an_empty_query_has_nothing),
    cmocka_unit_test(wrong_json_queries_are_refused_by_name_and_identified),
    cmocka_unit_test(topic_names_have_a_length),
    cmocka_unit_test(wrong_protobuf_queries_are_refused_by_name_and_identified),
    cmocka_unit_test(bytes_that_are_no_query_leave_the_output_unchanged),
    cmocka_unit_test(answers_look_like_this),
    cmocka_unit_test(error_answers_look_like_this),
    cmocka_unit_test(answers_in_protobuf_unpack_to_the_same),
    cmocka_unit_test(a_bound_without_end_is_the_largest_number_and_no_bound_is_none),
    cmocka_unit_test(scores_that_are_no_numbers_are_never_sent),
    cmocka_unit_test(messages_cut_at_any_byte_are_safe),
    cmocka_unit_test(cut_json_is_never_a_message),
    cmocka_unit_test(messages_with_changed_bytes_are_safe),
  };

  return cmocka_run_group_tests(tests, NULL, free_regions);
}
