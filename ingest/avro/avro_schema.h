/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of Apache Avro (specification 1.11), as far as reading binary values needs them.
 *
 * The code is our own because a value can come from anybody. The C library of Avro in Debian 12 is made for values of
 * friends: it believes a length before the bytes are there, and leaks memory when a value is broken.
 */
#ifndef INGEST_AVRO_SCHEMA_H
#define INGEST_AVRO_SCHEMA_H

#include <jansson.h>

#include "base/err.h"
#include "base/region.h"

enum avro_kind {
  AVRO_NULL,
  AVRO_BOOLEAN,
  AVRO_INT,
  AVRO_LONG,
  AVRO_FLOAT,
  AVRO_DOUBLE,
  AVRO_BYTES,
  AVRO_STRING,
  AVRO_RECORD,
  AVRO_ENUM,
  AVRO_ARRAY,
  AVRO_MAP,
  AVRO_UNION,
  AVRO_FIXED,
};

/* What a number or bytes mean. Logical types that are read like their underlying type are not told apart. */
enum avro_logical { AVRO_PLAIN, AVRO_DECIMAL, AVRO_DATE, AVRO_MICROS, AVRO_NANOS };

struct avro_type {
  enum avro_kind kind;
  enum avro_logical logical;
  uint32_t scale;                 /* AVRO_DECIMAL: digits after the point */
  size_t size;                    /* AVRO_FIXED: bytes */
  size_t n;                       /* fields, symbols or branches; 1 for AVRO_ARRAY and AVRO_MAP */
  const char **names;             /* [n] of fields, symbols */
  const struct avro_type **types; /* [n] of fields, branches, elements */
};

/* Make the type that a schema describes. It lives in the region, and may contain itself.
 *
 * others  a list of schemas whose types it may name, each after those that it needs itself; NULL: there are none
 *
 * Returns ERR_CONFIG with what is wrong and where; ERR_MEMORY. Thread: the one that owns the region. */
err_t avro_schema_make(const json_t *others, const json_t *schema, struct region *r, const struct avro_type **out);

#endif
