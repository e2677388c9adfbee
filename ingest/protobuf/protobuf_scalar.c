/* SPDX-License-Identifier: Apache-2.0 */
/* A number is taken in two steps: from the wire to 64 bits, then to JSON. Defaults need the second one alone. */
#include "ingest/protobuf/protobuf_scalar.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/utf8.h"
#include "ingest/json/json_make.h"

enum protobuf_wire_type protobuf_scalar_wire(enum protobuf_kind kind)
{
  switch (kind) {
  case PROTOBUF_DOUBLE:
  case PROTOBUF_FIXED64:
  case PROTOBUF_SFIXED64:
    return PROTOBUF_WIRE_FIXED64;
  case PROTOBUF_FLOAT:
  case PROTOBUF_FIXED32:
  case PROTOBUF_SFIXED32:
    return PROTOBUF_WIRE_FIXED32;
  case PROTOBUF_STRING:
  case PROTOBUF_BYTES:
  case PROTOBUF_MESSAGE:
    return PROTOBUF_WIRE_BYTES;
  case PROTOBUF_GROUP:
    return PROTOBUF_WIRE_GROUP;
  default:
    return PROTOBUF_WIRE_VARINT;
  }
}

static int64_t zigzag(uint64_t bits)
{
  return (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
}

/* What the wire has is cut to the kind's size, as everybody does it. */
static uint64_t widen(enum protobuf_kind kind, uint64_t bits)
{
  switch (kind) {
  case PROTOBUF_INT32:
  case PROTOBUF_ENUM:
  case PROTOBUF_SFIXED32:
    return (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
  case PROTOBUF_UINT32:
    return (uint32_t)bits;
  case PROTOBUF_SINT32:
    return (uint64_t)zigzag((uint32_t)bits);
  case PROTOBUF_SINT64:
    return (uint64_t)zigzag(bits);
  case PROTOBUF_BOOL:
    return bits != 0;
  default:
    return bits;
  }
}

static err_t give_float(uint64_t bits, json_t **out)
{
  uint32_t low = (uint32_t)bits;
  float x;

  memcpy(&x, &low, sizeof x);
  return json_make_real((double)x, out);
}

static err_t give_double(uint64_t bits, json_t **out)
{
  double x;

  memcpy(&x, &bits, sizeof x);
  return json_make_real(x, out);
}

static err_t give_unsigned(uint64_t bits, json_t **out)
{
  char digits[24];

  if (bits <= INT64_MAX)
    return json_make_keep(json_integer((json_int_t)bits), out);
  snprintf(digits, sizeof digits, "%" PRIu64, bits);
  return json_make_keep(json_string(digits), out);
}

static err_t give_enum(const struct protobuf_enum *e, uint64_t bits, json_t **out)
{
  const char *name = protobuf_schema_find_value(e, (int32_t)(uint32_t)bits);

  return json_make_keep(name ? json_string_nocheck(name) : json_integer((json_int_t)bits), out);
}

static err_t give_number(const struct protobuf_field *field, uint64_t bits, json_t **out)
{
  switch (field->kind) {
  case PROTOBUF_DOUBLE:
    return give_double(bits, out);
  case PROTOBUF_FLOAT:
    return give_float(bits, out);
  case PROTOBUF_UINT64:
  case PROTOBUF_FIXED64:
    return give_unsigned(bits, out);
  case PROTOBUF_BOOL:
    return json_make_keep(json_boolean(bits), out);
  case PROTOBUF_ENUM:
    return give_enum(field->enumeration, bits, out);
  default:
    return json_make_keep(json_integer((json_int_t)bits), out);
  }
}

static err_t give_bytes(const struct protobuf_field *field, struct span bytes, json_t **out)
{
  if (field->kind == PROTOBUF_BYTES)
    return json_make_base64(bytes, out);
  if (!utf8_is_valid(bytes))
    FAIL(ERR_WIRE, "the text is not UTF-8, or has a zero character");
  return json_make_keep(json_stringn_nocheck(bytes.n ? (const char *)bytes.p : "", bytes.n), out);
}

static err_t take_number(enum protobuf_kind kind, struct span *bytes, uint64_t *out)
{
  switch (protobuf_scalar_wire(kind)) {
  case PROTOBUF_WIRE_FIXED64:
    return protobuf_wire_take_fixed64(bytes, out);
  case PROTOBUF_WIRE_FIXED32:
    return protobuf_wire_take_fixed32(bytes, out);
  default:
    return protobuf_wire_take_varint(bytes, out);
  }
}

err_t protobuf_scalar_take(const struct protobuf_field *field, struct span *bytes, json_t **out)
{
  struct span content = { 0 };
  uint64_t bits = 0;

  if (protobuf_scalar_wire(field->kind) == PROTOBUF_WIRE_BYTES) {
    TRY(protobuf_wire_take_bytes(bytes, &content));
    return give_bytes(field, content, out);
  }
  TRY(take_number(field->kind, bytes, &bits));
  return give_number(field, widen(field->kind, bits), out);
}

err_t protobuf_scalar_default(const struct protobuf_field *field, json_t **out)
{
  if (protobuf_scalar_wire(field->kind) == PROTOBUF_WIRE_BYTES)
    return give_bytes(field, field->default_bytes, out);
  return give_number(field, field->default_bits, out);
}
