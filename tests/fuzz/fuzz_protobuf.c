/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing the reader of Protobuf: any bytes are a value of any message, or an error with a message. A value has no more
 * parts than PROTOBUF_VALUES_MAX. The bytes are also read as a descriptor set.
 *
 * Random inputs are messages of shop.proto and legacy.proto, and the descriptor set of these, changed a little
 * (fuzz_main.h).
 */
#include "tests/fuzz/fuzz_main.h"

#include "ingest/protobuf/protobuf_scalar.h"
#include "ingest/protobuf/protobuf_value.h"
#include "tests/support/dice.h"

enum { SET_BYTES_MAX = 1 << 16, N_MESSAGES = 2 };

static const char *const names[N_MESSAGES] = { "shop.v1.Film", "shop.legacy.Film" };

static uint8_t set[SET_BYTES_MAX];

static size_t read_set(void)
{
  static size_t n;
  FILE *f = n ? NULL : fopen(SLUICE_SOURCE_DIR "/tests/ingest/protobuf/shop.desc", "rb");

  if (f) {
    n = fread(set, 1, sizeof set, f);
    fclose(f);
  }
  CHECK(n > 0 && n < sizeof set);
  return n;
}

static const struct protobuf_type *type_of(size_t i)
{
  static struct region kept;
  static const struct protobuf_type *types[N_MESSAGES];
  size_t n = read_set();

  if (!types[i])
    CHECK(protobuf_schema_make(span_of(set, n), names[i], &kept, &types[i]) == ERR_OK);
  return types[i];
}

static size_t count(const json_t *json)
{
  size_t n = 1, i;
  const char *name;
  json_t *value;

  json_array_foreach(json, i, value) n += count(value);
  json_object_foreach((json_t *)(uintptr_t)json, name, value) n += count(value);
  return n;
}

static void check_value(const struct protobuf_type *type, struct span bytes)
{
  json_t *json = NULL;
  err_code_t err = protobuf_value_read(type, bytes, &json);

  CHECK(err == ERR_OK || err == ERR_WIRE);
  if (err != ERR_OK) {
    CHECK(*err_message());
    return;
  }
  CHECK(count(json) <= PROTOBUF_VALUES_MAX);
  json_decref(json);
}

static void check_set(struct span bytes)
{
  const struct protobuf_type *type;

  for (size_t i = 0; i < N_MESSAGES; i++) {
    err_code_t err = protobuf_schema_make(bytes, names[i], &region, &type);
    CHECK(err == ERR_OK || err == ERR_CONFIG);
    if (err == ERR_OK)
      check_value(type, bytes);
    region_reset(&region);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  for (size_t i = 0; i < N_MESSAGES; i++)
    check_value(type_of(i), span_of(data, size));
  check_set(span_of(data, size));
  return 0;
}

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

enum { BYTES_MAX = 4096, DEPTH_MAX = 3 };

/* Bytes that are being drawn. */
struct draw {
  struct dice *dice;
  uint8_t bytes[BYTES_MAX];
  size_t n;
};

static void put(struct draw *d, uint8_t byte)
{
  if (d->n < BYTES_MAX)
    d->bytes[d->n++] = byte;
}

static void put_varint(struct draw *d, uint64_t bits)
{
  for (; bits >= 0x80; bits >>= 7)
    put(d, (uint8_t)(bits | 0x80));
  put(d, (uint8_t)bits);
}

static void put_tag(struct draw *d, uint32_t number, enum protobuf_wire_type type)
{
  put_varint(d, (uint64_t)number << 3 | type);
}

static void put_bytes(struct draw *d, size_t n)
{
  for (size_t i = 0; i < n; i++)
    put(d, (uint8_t)('a' + dice_below(d->dice, 26)));
}

static void put_message(struct draw *d, const struct protobuf_type *type, int depth);

/* A message, or numbers in one field: with a length in front, which is known at their end. */
static void put_with_length(struct draw *d, const struct draw *inner)
{
  put_varint(d, inner->n);
  for (size_t i = 0; i < inner->n; i++)
    put(d, inner->bytes[i]);
}

static void put_number(struct draw *d, enum protobuf_wire_type type)
{
  if (type == PROTOBUF_WIRE_VARINT)
    put_varint(d, dice_u64(d->dice) >> dice_below(d->dice, 64));
  else
    put_bytes(d, type == PROTOBUF_WIRE_FIXED32 ? 4 : 8);
}

static void put_packed(struct draw *d, const struct protobuf_field *field, enum protobuf_wire_type type)
{
  struct draw inner = { .dice = d->dice };

  for (size_t n = dice_below(d->dice, 6); n > 0; n--)
    put_number(&inner, type);
  put_tag(d, field->number, PROTOBUF_WIRE_BYTES);
  put_with_length(d, &inner);
}

/* Of a time, 64 random bits would be too many seconds. */
static void put_inner(struct draw *d, const struct protobuf_field *field, int depth)
{
  struct draw inner = { .dice = d->dice };

  if (field->type->meaning == PROTOBUF_TIMESTAMP) {
    put_tag(&inner, 1, PROTOBUF_WIRE_VARINT);
    put_varint(&inner, dice_below(d->dice, 1 << 30));
  } else {
    put_message(&inner, field->type, depth + 1);
  }
  put_tag(d, field->number, PROTOBUF_WIRE_BYTES);
  put_with_length(d, &inner);
}

static void put_field(struct draw *d, const struct protobuf_field *field, int depth)
{
  enum protobuf_wire_type type = protobuf_scalar_wire(field->kind);
  size_t n = dice_below(d->dice, 7);

  if (field->kind == PROTOBUF_MESSAGE) {
    put_inner(d, field, depth);
  } else if (field->kind == PROTOBUF_GROUP) {
    put_tag(d, field->number, PROTOBUF_WIRE_GROUP);
    put_message(d, field->type, depth + 1);
    put_tag(d, field->number, PROTOBUF_WIRE_GROUP_END);
  } else if (type == PROTOBUF_WIRE_BYTES) {
    put_tag(d, field->number, type);
    put_varint(d, n);
    put_bytes(d, n);
  } else if (field->is_repeated && n & 1) {
    put_packed(d, field, type);
  } else {
    put_tag(d, field->number, type);
    put_number(d, type);
  }
}

static void put_message(struct draw *d, const struct protobuf_type *type, int depth)
{
  for (size_t n = depth < DEPTH_MAX ? dice_below(d->dice, 8) : 0; n > 0; n--)
    put_field(d, &type->fields[dice_below(d->dice, type->n)], depth);
}

static void change(struct draw *d)
{
  size_t at = dice_below(d->dice, d->n + 1);

  if (dice_below(d->dice, 4) == 0)
    d->n = at;
  else if (at < d->n)
    d->bytes[at] = (uint8_t)dice_below(d->dice, 256);
}

static void fuzz_random(long rounds)
{
  static struct dice dice;
  static struct draw d = { .dice = &dice };
  size_t n_good = 0, n_set = read_set();

  dice.state = dice_seed();
  CHECK(n_set <= BYTES_MAX);
  for (long round = 0; round < rounds; round++) {
    const struct protobuf_type *type = type_of((size_t)round % N_MESSAGES);
    json_t *json = NULL;
    d.n = 0;
    put_message(&d, type, 0);
    if (d.n < BYTES_MAX) { /* what was not cut is a message */
      CHECK(protobuf_value_read(type, span_of(d.bytes, d.n), &json) == ERR_OK);
      json_decref(json);
      n_good++;
    }
    for (size_t changes = 1 + dice_below(&dice, 4); changes > 0; changes--)
      change(&d);
    fuzz_run(d.bytes, d.n);
    d.n = n_set;
    memcpy(d.bytes, set, d.n);
    change(&d);
    fuzz_run(d.bytes, d.n);
  }
  CHECK(rounds < 100 || n_good > (size_t)rounds / 2);
  printf("%ld inputs, %zu messages before they were changed\n", rounds, n_good);
}

#endif
