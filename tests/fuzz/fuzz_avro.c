/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing the reader of Avro: any bytes are a value of any schema, or an error with a message. A value has no more
 * parts than AVRO_VALUES_MAX. The bytes are also read as a schema.
 *
 * Random inputs are values of a schema with every type, and the schema, changed a little (fuzz_main.h).
 */
#include "tests/fuzz/fuzz_main.h"

#include "ingest/avro/avro_value.h"
#include "tests/support/dice.h"

/* Every type, in every place. */
static const char schema[] =
    "{\"type\": \"record\", \"name\": \"R\", \"fields\": ["
    "{\"name\": \"n\", \"type\": \"null\"}, {\"name\": \"b\", \"type\": \"boolean\"},"
    "{\"name\": \"i\", \"type\": {\"type\": \"int\", \"logicalType\": \"date\"}},"
    "{\"name\": \"l\", \"type\": {\"type\": \"long\", \"logicalType\": \"timestamp-micros\"}},"
    "{\"name\": \"s\", \"type\": [\"null\", \"string\", \"double\"]},"
    "{\"name\": \"d\", \"type\": {\"type\": \"bytes\", \"logicalType\": \"decimal\", \"precision\": 9, \"scale\": 3}},"
    "{\"name\": \"y\", \"type\": \"bytes\"}, {\"name\": \"f\", \"type\": {\"type\": \"fixed\", \"name\": \"F\", \"size\": 3}},"
    "{\"name\": \"e\", \"type\": {\"type\": \"enum\", \"name\": \"E\", \"symbols\": [\"A\", \"B\"]}},"
    "{\"name\": \"v\", \"type\": {\"type\": \"array\", \"items\": \"float\"}},"
    "{\"name\": \"z\", \"type\": {\"type\": \"array\", \"items\": \"null\"}},"
    "{\"name\": \"m\", \"type\": {\"type\": \"map\", \"values\": [\"long\", \"R\"]}}]}";

static size_t count(const json_t *json)
{
  size_t n = 1, i;
  const char *name;
  json_t *value;

  json_array_foreach(json, i, value) n += count(value);
  json_object_foreach((json_t *)(uintptr_t)json, name, value) n += count(value);
  return n;
}

static const struct avro_type *type_of_schema(void)
{
  static struct region kept;
  static const struct avro_type *type;

  if (!type) {
    json_t *json = json_loads(schema, 0, NULL);
    CHECK(json && avro_schema_make(NULL, json, &kept, &type) == ERR_OK);
    json_decref(json);
  }
  return type;
}

static void check_value(const struct avro_type *type, struct span bytes)
{
  json_t *json = NULL;
  err_code_t err = avro_value_read(type, bytes, &json);

  CHECK(err == ERR_OK || err == ERR_WIRE);
  if (err != ERR_OK) {
    CHECK(*err_message());
    return;
  }
  CHECK(count(json) <= AVRO_VALUES_MAX);
  json_decref(json);
}

static void check_schema(struct span bytes)
{
  json_t *json = json_loadb((const char *)bytes.p, bytes.n, JSON_DECODE_ANY, NULL);
  const struct avro_type *type;

  if (!json)
    return;
  err_code_t err = avro_schema_make(NULL, json, &region, &type);
  CHECK(err == ERR_OK || err == ERR_CONFIG);
  if (err == ERR_OK)
    check_value(type, bytes);
  json_decref(json);
  region_reset(&region);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  check_value(type_of_schema(), span_of(data, size));
  check_schema(span_of(data, size));
  return 0;
}

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

enum { BYTES_MAX = 4096 };

/* Bytes that are being drawn. */
struct draw {
  struct dice dice;
  uint8_t bytes[BYTES_MAX];
  size_t n;
};

static void put(struct draw *d, uint8_t byte)
{
  if (d->n < BYTES_MAX)
    d->bytes[d->n++] = byte;
}

static void put_long(struct draw *d, int64_t x)
{
  uint64_t bits = (uint64_t)x << 1 ^ (uint64_t)(x >> 63);

  for (; bits >= 0x80; bits >>= 7)
    put(d, (uint8_t)(bits | 0x80));
  put(d, (uint8_t)bits);
}

static void put_bytes(struct draw *d, size_t n)
{
  for (size_t i = 0; i < n; i++)
    put(d, (uint8_t)('a' + dice_below(&d->dice, 26)));
}

static void put_value(struct draw *d, const struct avro_type *type, int depth);

/* Lists and maps in blocks, some of which say how many bytes they have. */
static void put_blocks(struct draw *d, const struct avro_type *type, int depth)
{
  for (size_t blocks = dice_below(&d->dice, 3); blocks > 0; blocks--) {
    size_t n = 1 + dice_below(&d->dice, 4);
    bool has_size = dice_below(&d->dice, 2);
    put_long(d, has_size ? -(int64_t)n : (int64_t)n);
    if (has_size)
      put_long(d, (int64_t)dice_below(&d->dice, 100));
    for (size_t i = 0; i < n; i++) {
      if (type->kind == AVRO_MAP) {
        put_long(d, 2);
        put_bytes(d, 2);
      }
      put_value(d, type->types[0], depth);
    }
  }
  put_long(d, 0);
}

static void put_value(struct draw *d, const struct avro_type *type, int depth)
{
  size_t n = dice_below(&d->dice, 7), branch;

  switch (type->kind) {
  case AVRO_NULL:
    break;
  case AVRO_BOOLEAN:
    put(d, n & 1);
    break;
  case AVRO_INT:
    put_long(d, (int64_t)n - 3);
    break;
  case AVRO_LONG:
    put_long(d, ((int64_t)n - 3) * ((int64_t)1 << 8 * n));
    break;
  case AVRO_FLOAT:
    put_bytes(d, 4);
    break;
  case AVRO_DOUBLE:
    put_bytes(d, 8);
    break;
  case AVRO_BYTES:
  case AVRO_STRING:
    put_long(d, (int64_t)n);
    put_bytes(d, n);
    break;
  case AVRO_FIXED:
    put_bytes(d, type->size);
    break;
  case AVRO_RECORD:
    for (size_t i = 0; i < type->n; i++)
      put_value(d, type->types[i], depth + 1);
    break;
  case AVRO_ENUM:
    put_long(d, (int64_t)dice_below(&d->dice, type->n));
    break;
  case AVRO_ARRAY:
  case AVRO_MAP:
    put_blocks(d, type, depth + 1);
    break;
  case AVRO_UNION: /* the first branch ends a recursion */
    branch = depth > 6 ? 0 : dice_below(&d->dice, type->n);
    put_long(d, (int64_t)branch);
    put_value(d, type->types[branch], depth + 1);
    break;
  }
}

static void change(struct draw *d)
{
  size_t at = dice_below(&d->dice, d->n + 1);

  if (dice_below(&d->dice, 4) == 0)
    d->n = at;
  else if (at < d->n)
    d->bytes[at] = (uint8_t)dice_below(&d->dice, 256);
}

static void fuzz_random(long rounds)
{
  static struct draw d;
  size_t n_good = 0;

  d.dice.state = dice_seed();
  for (long round = 0; round < rounds; round++) {
    json_t *json = NULL;
    d.n = 0;
    put_value(&d, type_of_schema(), 0);
    if (d.n < BYTES_MAX) { /* what was not cut is a value */
      CHECK(avro_value_read(type_of_schema(), span_of(d.bytes, d.n), &json) == ERR_OK);
      json_decref(json);
      n_good++;
    }
    for (size_t changes = 1 + dice_below(&d.dice, 4); changes > 0; changes--)
      change(&d);
    fuzz_run(d.bytes, d.n);
    d.n = sizeof schema - 1;
    memcpy(d.bytes, schema, d.n);
    change(&d);
    fuzz_run(d.bytes, d.n);
  }
  CHECK(rounds < 100 || n_good > (size_t)rounds / 2);
  printf("%ld inputs, %zu values before they were changed\n", rounds, n_good);
}

#endif
