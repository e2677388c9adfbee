/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing the wire format: any bytes are decoded as an item, as a query and as a record of what a user has seen, in
 * both formats, and as the key and the value of records with a mapping. Nothing may break, decoding may take at most
 * a multiple of their size, and a decoded item must survive encoding and decoding.
 *
 * Random inputs are good messages, changed a little (fuzz_main.h).
 */
#include "tests/fuzz/fuzz_main.h"

#include "ingest/wire/item_format.h"
#include "ingest/wire/wire.h"
#include "ingest/wire/wire_partial.h"
#include "ingest/wire/wire_message.h"
#include "tests/support/dice.h"

static bool are_same_floats(struct floats a, struct floats b)
{
  return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, a.n * sizeof *a.v) == 0);
}

static bool are_same_parts(const struct item_change *a, const struct item_change *b)
{
  for (size_t i = 0; a->n_parts == b->n_parts && i < a->n_parts; i++) {
    const struct part *p = &a->parts[i], *q = &b->parts[i];
    if (!span_equal(p->space, q->space) || !span_equal(p->codes, q->codes) || !are_same_floats(p->vector, q->vector) ||
        !are_same_floats(p->components, q->components) || !are_same_floats(p->item_gate, q->item_gate))
      return false;
  }
  return a->n_parts == b->n_parts;
}

/* Compare by bytes: a number keeps its sign, too. */
static bool are_same_values(const struct value *a, const struct value *b)
{
  if (a->kind != b->kind)
    return false;
  switch (a->kind) {
  case VALUE_NULL:
    return true;
  case VALUE_BOOL:
    return a->is_true == b->is_true;
  case VALUE_INTEGER:
    return a->integer == b->integer;
  case VALUE_NUMBER:
    return memcmp(&a->number, &b->number, sizeof a->number) == 0;
  case VALUE_TEXT:
    return span_equal(a->text, b->text);
  case VALUE_LIST:
    break;
  }
  for (size_t i = 0; a->list.n == b->list.n && i < a->list.n; i++)
    if (!are_same_values(&a->list.v[i], &b->list.v[i]))
      return false;
  return a->list.n == b->list.n;
}

static const struct value *find_attribute(const struct item_change *item, struct span name)
{
  for (size_t i = 0; i < item->n_attributes; i++)
    if (span_equal(item->attributes[i].name, name))
      return &item->attributes[i].value;
  return NULL;
}

/* JSON does not keep the order of the attributes. */
static bool are_same_attributes(const struct item_change *a, const struct item_change *b)
{
  for (size_t i = 0; a->n_attributes == b->n_attributes && i < a->n_attributes; i++) {
    const struct value *other = find_attribute(b, a->attributes[i].name);
    if (!other || !are_same_values(&a->attributes[i].value, other))
      return false;
  }
  return a->n_attributes == b->n_attributes;
}

/* Check the memory that decoding has taken since `before`, also if it failed. */
static void check_taken(size_t before, struct span value)
{
  CHECK(region.taken_bytes - before <= value.n * WIRE_TAKEN_TIMES + WIRE_TAKEN_MORE);
  CHECK(region.limit_bytes == 0);
}

static void check_item(struct span value, enum wire_format format)
{
  struct item_change item = { 0 }, back = { 0 };
  struct span bytes;
  size_t before = region.taken_bytes;
  err_code_t err = wire_decode_item(value, format, &region, &item);

  check_taken(before, value);
  CHECK(err == ERR_OK || err == ERR_WIRE || err == ERR_ITEM);
  if (err != ERR_OK)
    return;
  for (enum wire_format to = WIRE_PROTOBUF; to <= WIRE_JSON; to++) {
    CHECK(wire_encode_item(&item, to, &region, &bytes) == ERR_OK);
    CHECK(wire_decode_item(bytes, to, &region, &back) == ERR_OK);
    CHECK(are_same_parts(&item, &back));
    CHECK(are_same_attributes(&item, &back));
  }
}

static void check_floats(struct floats floats)
{
  for (size_t i = 0; i < floats.n; i++)
    CHECK(floats.v[i] - floats.v[i] == 0); /* it is finite */
}

/* Check that the fields that an answer repeats can be encoded, for good and bad queries. */
static void check_echo(const struct query *query)
{
  struct hit hits[4];
  struct answer answer = { .id = query->id, .space = query->space, .hits = hits };
  struct span bytes;

  for (; answer.n_hits < query->n_exclude && answer.n_hits < 4; answer.n_hits++)
    hits[answer.n_hits] = (struct hit){ .key = query->exclude[answer.n_hits], .score = 0.5f };
  for (int is_error = 0; is_error < 2; is_error++) {
    answer.error = is_error ? ANSWER_BAD_QUERY : ANSWER_OK;
    answer.error_message = err_message();
    CHECK(wire_encode_answer(&answer, WIRE_PROTOBUF, &region, &bytes) == ERR_OK);
    CHECK(wire_encode_answer(&answer, WIRE_JSON, &region, &bytes) == ERR_OK);
    CHECK(wire_format_of(bytes, (struct span){ 0 }) == WIRE_JSON);
  }
}

static void check_parameters(const struct query *query)
{
  size_t n_values = 0;

  CHECK(query->n_parameters <= QUERY_PARAMETERS_MAX);
  for (size_t i = 0; i < query->n_parameters; i++) {
    const struct value *v = &query->parameters[i];
    n_values += v->kind == VALUE_LIST ? v->list.n : 1;
    CHECK(v->kind != VALUE_NUMBER || v->number - v->number == 0); /* it is finite */
  }
  CHECK(n_values <= QUERY_PARAMETER_VALUES_MAX);
}

static void check_query(struct span value, enum wire_format format)
{
  struct query query = { 0 };
  size_t before = region.taken_bytes;
  err_code_t err = wire_decode_query(value, format, &region, &query);

  check_taken(before, value);
  CHECK(query.id.n <= QUERY_ID_MAX && query.space.n <= SPACE_NAME_MAX && query.method.n <= QUERY_METHOD_MAX);
  CHECK(query.n_exclude <= QUERY_EXCLUDE_MAX && query.n_at_least <= QUERY_AT_LEAST_MAX);
  CHECK(err == ERR_OK || err == ERR_WIRE || err == ERR_QUERY);
  check_floats(query.vector);
  check_floats(query.components);
  check_floats(query.query_gate);
  for (size_t i = 0; i < query.n_exclude; i++)
    CHECK(query.exclude[i].n >= 1 && query.exclude[i].n <= ITEM_KEY_MAX);
  for (size_t i = 0; i < query.n_at_least; i++)
    CHECK(query.at_least[i].partition >= 0 && query.at_least[i].next >= 0);
  CHECK(query.exclude_seen_by.n <= SEEN_USER_MAX && query.n_at_least_seen <= QUERY_AT_LEAST_MAX);
  for (size_t i = 0; i < query.n_at_least_seen; i++)
    CHECK(query.at_least_seen[i].partition >= 0 && query.at_least_seen[i].next >= 0);
  CHECK(query.reply_topic.n <= TOPIC_NAME_MAX && query.filter.n <= QUERY_FILTER_MAX);
  check_parameters(&query);
  if (err != ERR_WIRE)
    check_echo(&query);
}

static void check_seen(struct span value, enum wire_format format)
{
  struct seen_change seen = { 0 };
  size_t before = region.taken_bytes;
  err_code_t err = wire_decode_seen(value, format, &region, &seen);

  check_taken(before, value);
  CHECK(err == ERR_OK || err == ERR_WIRE || err == ERR_ITEM);
  if (err != ERR_OK)
    return;
  CHECK(seen.n_items >= 1 && seen.n_items <= SEEN_ITEMS_MAX && seen.time_unix_ms >= 0);
  for (size_t i = 0; i < seen.n_items; i++)
    CHECK(seen.items[i].n >= 1 && seen.items[i].n <= ITEM_KEY_MAX);
}

static void check_partial(struct span value)
{
  struct partial partial;
  struct answer answer;
  err_code_t err = wire_decode_partial(value, &region, &partial);

  CHECK(err == ERR_OK || err == ERR_WIRE);
  if (err == ERR_OK && partial.kind != PARTIAL_ANSWERED)
    CHECK(partial.n_shards >= 1 && partial.n_shards <= PARTIAL_SHARDS_MAX && partial.shard < partial.n_shards);
  err = wire_decode_answer(value, &region, &answer);
  CHECK(err == ERR_OK || err == ERR_WIRE);
  if (err == ERR_OK)
    CHECK(answer.method.n_args <= METHOD_ARGS_MAX && answer.error <= ANSWER_PARTIAL);
}

/* Make a mapping with a field of each kind. */
static void open_format(struct item_format *out, bool is_debezium, bool is_framed)
{
  static const char *const names[] = { "bool", "keyword", "keywords", "integer", "number", "time" };

  *out = (struct item_format){ .is_mapped = true, .is_framed = is_framed, .mapping.is_debezium = is_debezium };
  CHECK(mapping_add(&out->mapping, MAPPING_VECTOR, "books", N_ATTRIBUTE_TYPES, "v") == ERR_OK);
  CHECK(mapping_add(&out->mapping, MAPPING_CODES, "films", N_ATTRIBUTE_TYPES, "c.0") == ERR_OK);
  for (int i = 0; i < N_ATTRIBUTE_TYPES; i++)
    CHECK(mapping_add(&out->mapping, MAPPING_ATTRIBUTE, names[i], (enum attribute_type)i, names[i]) == ERR_OK);
  CHECK(json_path_init(span_of_str("gone"), &out->mapping.deleted) == ERR_OK);
  if (!is_framed)
    CHECK(json_path_init(span_of_str("id"), &out->mapping.key) == ERR_OK);
}

static void check_record(const struct item_format *format, const struct topic_record *record)
{
  struct item_change item;
  size_t before = region.taken_bytes;
  err_code_t err = item_format_decode(format, record, &region, &item);

  check_taken(before, record->has_value ? record->value : record->key);
  CHECK(err == ERR_OK || err == ERR_WIRE || err == ERR_ITEM);
  if (err != ERR_OK)
    return;
  CHECK(item.key.n >= 1 && item.key.n <= ITEM_KEY_MAX);
  CHECK(item.is_delete || !item.is_whole || item.n_parts + item.n_attributes > 0);
  for (size_t i = 0; !item.is_delete && i < item.n_parts; i++) {
    check_floats(item.parts[i].vector);
    CHECK(!format->is_mapped || item.parts[i].vector.n + item.parts[i].codes.n > 0);
  }
}

static void check_formats(struct span bytes)
{
  struct topic_record as_value = { .has_key = true, .key = span_of_str("k"), .has_value = true, .value = bytes };
  struct topic_record as_key = { .has_key = true, .key = bytes };
  struct item_format format;

  for (int kind = 0; kind < 4; kind++) {
    region_reset(&region);
    open_format(&format, kind & 1, kind & 2);
    check_record(&format, &as_value);
    check_record(&format, &as_key);
    mapping_fini(&format.mapping);
  }
  format = (struct item_format){ .is_framed = true };
  check_record(&format, &as_value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span value = span_of(data, size);

  check_formats(value);

  for (enum wire_format format = WIRE_PROTOBUF; format <= WIRE_JSON; format++) {
    region_reset(&region);
    check_item(value, format);
    check_query(value, format);
    check_seen(value, format);
  }
  region_reset(&region);
  check_partial(value);
  return 0;
}

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

enum { VALUE_MAX = 8192 };

/* One good message of each kind. They are literals, so their last byte, a zero, does not belong to them. */
static const struct span *seeds(size_t *n)
{
#define SEED(literal)                               \
  {                                                 \
    (const uint8_t *)(literal), sizeof(literal) - 1 \
  }
  static const struct span list[] = {
    SEED("{\"parts\":{\"books\":{\"vector\":[1,-2.5,3e-3]},\"c\":{\"codes\":[1,2,255],\"itemGate\":{\"type\":\"F16\","
         "\"data\":\"ADwAwA==\"},\"components\":{\"values\":[0.5]}}}}"),
    SEED("{\"id\":\"q\",\"space\":\"books\",\"k\":10,\"method\":\"average(5)\",\"vector\":[1,2],\"user_id\":\"-7\","
         "\"exclude\":[\"a\",{\"base64\":\"/wA=\"}],\"atLeast\":[{\"partition\":1,\"next\":5}],\"deadline_unix_ms\":9,"
         "\"reply_topic\":\"t\",\"components\":{\"type\":1,\"data\":[0,60]},\"query_gate\":null}"),
    SEED("\x0a\x2e\x0a\x05"
         "books"
         "\x12\x25\x0a\x0a\x12\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0\x12\x0a\x1a\x08\x00\x00"
         "\x00\x3f\x00\x00\x80\x3f\x1a\x08\x08\x01\x12\x04\x00\x3c\x00\xc0\x22\x01\x07"),
    SEED("\x0a\x01q\x12\x05"
         "books"
         "\x18\x0a\x22\x0a"
         "average(5)"
         "\x2a\x0a\x12\x08\x00\x00\x80\x3f\x00\x00\x00\x40"
         "\x32\x0a\x1a\x08\x00\x00\x80\x3f\x00\x00\x00\x40\x3a\x06\x08\x02\x12\x02\x80\x3f\x40\x07\x4a\x01"
         "a"
         "\x4a\x02\xff\x00\x52\x04\x08\x01\x10\x05\x58\x09\x62\x01t"),
    /* Fields that occur twice: a vector in two pieces, the value of a part, an id. */
    SEED("\x0a\x01q\x2a\x0a\x1a\x08\x00\x00\x80\x3f\x00\x00\x00\x40\x2a\x05\x1d\x00\x00\x00\x00"),
    SEED("\x0a\x13\x0a\x01s\x12\x07\x0a\x05\x1d\x00\x00\x00\x00\x12\x05\x0a\x03\x12\x01\x00"),
    SEED("\x0a\x01q\x12\x01s\x0a\x01r\x18\x01\x18\x02\x78\x01\x78\x01"),
    SEED("{\"id\":\"q\",\"id\":\"r\",\"k\":9223372036854775808,\"vector\":[1e400,100000000000000000000],"
         "\"user_id\":-9223372036854775809,\"space\":\"1e400\"}"),
    SEED("{\"parts\":{},\"attributes\":{\"country\":\"de\",\"price\":9.5,\"tags\":[\"a\",\"b\"],\"available\":true,"
         "\"expires\":1790000000000,\"old\":null,\"mixed\":[1,2.5,false,\"x\"],\"c\":{\"list\":{\"texts\":[\"a\"]}}}}"),
    SEED("{\"id\":\"q\",\"filter\":\"price < $1 and country in $2\",\"parameters\":[0.1,[\"de\",\"at\"],null,7,[]]}"),
    SEED("\x12\x08\x0a\x02"
         "ok"
         "\x12\x02\x08\x01"
         "\x12\x08\x0a\x01n\x12\x03\x10\xe8\x07"
         "\x12\x0e\x0a\x01p\x12\x09\x19\x00\x00\x00\x00\x00\x00\xf8\x3f\x12\x08\x0a\x01t\x12\x03\x22\x01x"
         "\x12\x0d\x0a\x01l\x12\x08\x2a\x06\x22\x01"
         "a\x22\x01"
         "b\x12\x05\x0a\x01z\x12\x00"),
    /* A part of shard 1 of 2, and an answer with a method, a hit and a receipt. */
    SEED("\x10\x01\x18\x02\x22\x01m\x40\x0a\x7a\x09\x0a\x01q\x22\x04\x0a\x02"
         "ab"),
    SEED("\x0a\x01q\x1a\x08"
         "low(3,4)"
         "\x22\x08\x0a\x01k\x15\x00\x00\x80\x3f\x2a\x05\x15\x00\x00\x80\x3f"),
    SEED("{\"items\":[\"a\",{\"base64\":\"/wA=\"}],\"timeUnixMs\":\"1790000000000\"}"),
    SEED("\x0a\x01"
         "a\x0a\x02\xff\x00\x10\x80\xf0\xf4\xcc\x8c\x34"),
    SEED("{\"id\":\"q\",\"exclude_seen_by\":\"7\",\"atLeastSeen\":[{\"partition\":1,\"next\":5}],\"no_wait\":true}"),
    SEED("{\"id\":7,\"v\":[1,-2.5,3e-3],\"c\":[[0,255]],\"bool\":1,\"keyword\":\"de\",\"keywords\":\"[\\\"a\\\",2]\","
         "\"integer\":1990.0,\"number\":\"12.50\",\"time\":\"2026-11-22T12:00:00Z\",\"gone\":null}"),
    SEED("{\"schema\":{},\"payload\":{\"op\":\"u\",\"before\":null,\"after\":{\"id\":\"x\",\"v\":\"AACAPwAAIMA=\","
         "\"c\":[\"B/8=\"],\"number\":\"__debezium_unavailable_value\",\"time\":1795348800000,\"gone\":\"false\"}}}"),
    SEED("\0\0\0\1\2{\"op\":\"d\",\"before\":{\"id\":18446744073709551615}}"),
    SEED("\0\0\0\1\2{\"v\":\"[1,1e999]\",\"integer\":18446744073709551616}"),
    SEED("\0\0\0\1\2\2\0\x0a\x05\x0a\x01s\x12\x00"),
    SEED("\x0a\x01q\x6a\x06"
         "a = $1"
         "\x72\x02\x10\x05\x72\x06\x2a\x04\x12\x02\x01\x02"),
  };
#undef SEED

  *n = sizeof list / sizeof list[0];
  return list;
}

/* Pieces that random bytes would seldom form. */
static const struct span words[] = {
#define WORD(literal)                               \
  {                                                 \
    (const uint8_t *)(literal), sizeof(literal) - 1 \
  }
  WORD("null"),
  WORD("1e39"),
  WORD("-1"),
  WORD("{"),
  WORD("}"),
  WORD("["),
  WORD("]"),
  WORD("\"\""),
  WORD("\\u0000"),
  WORD("\xff"),
  WORD("\x80\x80"),
  WORD("\"base64\":"),
  WORD("\x0a\x00"),
  WORD("\x7f"),
  WORD("4294967296"),
  WORD("\"parts\":{"),
  WORD("1e400"),
  WORD("9223372036854775808"),
  WORD("{},"),
  WORD("[],"),
  WORD("\"attributes\":{\"a\":"),
  WORD("\x12\x05\x0a\x01z\x12\x00"),
  WORD("\x72\x00"),
  WORD("\x22\x01"
       "a"),
  WORD("\x2a\x05\x1d\x00\x00\x00\x00"),
  WORD("\x1a\x00"),
  WORD("\x78\x01"),
  WORD("\x4a\x01"
       "a"),
  WORD("\x52\x00"),
  /* lengths that are larger than any value */
  WORD("\x2a\xff\xff\xff\xff\x07"),
  WORD("\x0a\xff\xff\xff\xff\x0f"),
  WORD("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
#undef WORD
};

static size_t change(struct dice *d, uint8_t *value, size_t n)
{
  size_t at = dice_below(d, n + 1), length;

  switch (dice_below(d, 7)) {
  case 0: /* flip a bit */
    if (at < n)
      value[at] ^= (uint8_t)(1u << dice_below(d, 8));
    return n;
  case 1: /* replace a byte */
    if (at < n)
      value[at] = (uint8_t)dice_u64(d);
    return n;
  case 2: /* cut the end off */
    return at;
  case 3: /* remove bytes */
    length = dice_below(d, n - at + 1);
    memmove(value + at, value + at + length, n - at - length);
    return n - length;
  case 4: { /* insert a piece */
    struct span word = words[dice_below(d, sizeof words / sizeof words[0])];
    size_t times = dice_below(d, 4) ? 1 : 1 + dice_below(d, 1000);
    for (; times > 0 && n + word.n <= VALUE_MAX; times--) {
      memmove(value + at + word.n, value + at, n - at);
      memcpy(value + at, word.p, word.n);
      n += word.n;
    }
    return n;
  }
  case 5: /* repeat a piece many times */
    length = dice_below(d, (n - at < 40 ? n - at : 40) + 1);
    for (size_t times = dice_below(d, 200); times > 0 && n + length <= VALUE_MAX; times--) {
      memmove(value + at + length, value + at, n - at);
      n += length;
    }
    return n;
  default: /* repeat some bytes */
    length = dice_below(d, n - at + 1);
    if (n + length > VALUE_MAX)
      return n;
    memmove(value + at + length, value + at, n - at);
    return n + length;
  }
}

static void fuzz_random(long rounds)
{
  struct dice d = { dice_seed() };
  uint8_t value[VALUE_MAX];
  size_t n_seeds;
  const struct span *seed = seeds(&n_seeds);

  for (size_t i = 0; i < n_seeds; i++)
    fuzz_run(seed[i].p, seed[i].n);
  for (long round = 0; round < rounds; round++) {
    const struct span *from = &seed[dice_below(&d, n_seeds)];
    size_t n = from->n;
    memcpy(value, from->p, n);
    for (size_t changes = 1 + dice_below(&d, 6); changes > 0; changes--)
      n = change(&d, value, n);
    fuzz_run(value, n);
  }
  printf("%ld inputs\n", rounds);
}

#endif
