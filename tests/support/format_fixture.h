/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping of every kind of field, and decoding records with it from blocks of exactly their size. */
#ifndef TESTS_SUPPORT_FORMAT_FIXTURE_H
#define TESTS_SUPPORT_FORMAT_FIXTURE_H

#include <stdlib.h>

#include "ingest/wire/item_format.h"
#include "tests/support/assert_ok.h"

static struct region region;
static struct item_format format;
static struct item_change item;

static inline void map(enum mapping_kind kind, const char *name, enum attribute_type type, const char *path)
{
  assert_ok(mapping_add(&format.mapping, kind, name, type, path));
}

/* Make the mapping. key, deleted: paths or NULL. */
static inline void open_format(const char *key, const char *deleted, bool is_debezium, bool is_framed)
{
  format = (struct item_format){ .is_mapped = true, .is_framed = is_framed, .mapping.is_debezium = is_debezium };
  if (key)
    assert_ok(json_path_init(span_of_str(key), &format.mapping.key));
  if (deleted)
    assert_ok(json_path_init(span_of_str(deleted), &format.mapping.deleted));
  map(MAPPING_VECTOR, "books", N_ATTRIBUTE_TYPES, "embedding");
  map(MAPPING_CODES, "films", N_ATTRIBUTE_TYPES, "pq.codes");
  map(MAPPING_ATTRIBUTE, "available", ATTRIBUTE_BOOL, "available");
  map(MAPPING_ATTRIBUTE, "country", ATTRIBUTE_KEYWORD, "shipping.country");
  map(MAPPING_ATTRIBUTE, "tags", ATTRIBUTE_KEYWORDS, "tags");
  map(MAPPING_ATTRIBUTE, "year", ATTRIBUTE_INTEGER, "year");
  map(MAPPING_ATTRIBUTE, "price", ATTRIBUTE_NUMBER, "price.amount");
  map(MAPPING_ATTRIBUTE, "expires", ATTRIBUTE_TIME, "expires");
}

static inline void close_format(void)
{
  mapping_fini(&format.mapping);
  region_reset(&region);
}

static inline uint8_t *copy_bytes(struct span bytes)
{
  uint8_t *copy = malloc(bytes.n ? bytes.n : 1);

  assert_non_null(copy);
  if (bytes.n)
    memcpy(copy, bytes.p, bytes.n);
  return copy;
}

/* Decode a record into `item`. The value is gone when this returns; the key stays.
 *
 * key, value  a p of NULL: there is none
 */
static inline err_code_t decode_bytes(struct span key, struct span value)
{
  uint8_t *exact = copy_bytes(value);
  struct topic_record record = {
    .has_key = key.p,
    .key = key,
    .has_value = value.p,
    .value = span_of(exact, value.n),
    .partition = 3,
    .offset = 17,
  };
  err_code_t err = item_format_decode(&format, &record, &region, &item);

  memset(exact, 0xa5, value.n);
  free(exact);
  return err;
}

static inline err_code_t decode(const char *key, const char *value)
{
  return decode_bytes(key ? span_of_str(key) : (struct span){ 0 }, value ? span_of_str(value) : (struct span){ 0 });
}

static inline const struct value *attribute_of(const char *name)
{
  for (size_t i = 0; i < item.n_attributes; i++) {
    if (span_equal(item.attributes[i].name, span_of_str(name)))
      return &item.attributes[i].value;
  }
  return NULL;
}

static inline void assert_key(const char *due)
{
  if (!span_equal(item.key, span_of_str(due)))
    fail_msg("the key is %.*s, not %s", (int)item.key.n, (const char *)item.key.p, due);
}

#endif
