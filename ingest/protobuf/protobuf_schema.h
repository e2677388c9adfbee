/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody else's messages of Protobuf: their fields, as far as reading binary values needs them. They come from a
 * descriptor set, which protoc makes of .proto files. Protobuf goes by the numbers of fields, so the newest schema
 * reads what was written with older ones, and most of what newer ones write.
 *
 * Thread: any, once it is made. Blocks: no.
 */
#ifndef INGEST_PROTOBUF_SCHEMA_H
#define INGEST_PROTOBUF_SCHEMA_H

#include "base/err.h"
#include "base/region.h"
#include "base/span.h"

/* The numbers of descriptor.proto. */
enum protobuf_kind {
  PROTOBUF_DOUBLE = 1,
  PROTOBUF_FLOAT,
  PROTOBUF_INT64,
  PROTOBUF_UINT64,
  PROTOBUF_INT32,
  PROTOBUF_FIXED64,
  PROTOBUF_FIXED32,
  PROTOBUF_BOOL,
  PROTOBUF_STRING,
  PROTOBUF_GROUP, /* a message that ends with a tag */
  PROTOBUF_MESSAGE,
  PROTOBUF_BYTES,
  PROTOBUF_UINT32,
  PROTOBUF_ENUM,
  PROTOBUF_SFIXED32,
  PROTOBUF_SFIXED64,
  PROTOBUF_SINT32,
  PROTOBUF_SINT64,
};

/* What a message stands for: itself, a time (google.protobuf.Timestamp), or the value in it (BoolValue and others). */
enum protobuf_meaning { PROTOBUF_ITSELF, PROTOBUF_TIMESTAMP, PROTOBUF_WRAPPER };

struct protobuf_enum {
  size_t n;
  struct protobuf_enum_value {
    int32_t number;
    size_t index; /* in the definition: of equal numbers the first one names the value */
    const char *name;
  } * values; /* [n] by number and index */
};

struct protobuf_type;

struct protobuf_field {
  uint32_t number;
  const char *name;
  enum protobuf_kind kind;
  bool is_repeated;
  bool is_map;                                /* of the messages `type`, with a key, field 1, and a value, field 2 */
  bool has_default;                           /* if it is absent it is read as what follows; repeated: as empty */
  uint64_t default_bits;                      /* of numbers; integers have 64 bits */
  struct span default_bytes;                  /* of PROTOBUF_STRING, PROTOBUF_BYTES */
  const struct protobuf_type *type;           /* of PROTOBUF_MESSAGE, PROTOBUF_GROUP */
  const struct protobuf_enum *enumeration;    /* of PROTOBUF_ENUM */
  const struct protobuf_field *next_in_oneof; /* a ring; NULL: it is in none */
};

struct protobuf_type {
  const char *name; /* in full, such as shop.v1.Film */
  enum protobuf_meaning meaning;
  size_t n;
  struct protobuf_field *fields; /* [n] by number */
};

static inline bool protobuf_schema_is_message(const struct protobuf_field *field)
{
  return field->kind == PROTOBUF_MESSAGE || field->kind == PROTOBUF_GROUP;
}

/* Make the type of a message, and of those in it.
 *
 * set      the bytes of a descriptor set
 * message  its full name
 * r        where the types live
 *
 * Returns ERR_CONFIG with what is wrong and what to do; ERR_MEMORY. */
err_t protobuf_schema_make(struct span set, const char *message, struct region *r, const struct protobuf_type **out);

/* Find a field; NULL: there is none. */
const struct protobuf_field *protobuf_schema_find(const struct protobuf_type *type, uint32_t number);
const struct protobuf_field *protobuf_schema_find_name(const struct protobuf_type *type, const char *name);

/* Find the name of an enum's number; NULL: it has none. */
const char *protobuf_schema_find_value(const struct protobuf_enum *e, int32_t number);

#endif
