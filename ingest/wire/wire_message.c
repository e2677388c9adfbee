/* SPDX-License-Identifier: Apache-2.0 */
/* What items, queries and answers have in common: limits, and vectors. */
#include "ingest/wire/wire_message.h"

#include "ingest/json/json_text.h"
#include "ingest/json/numbers.h"
#include "ingest/wire/json_message.h"
#include "ingest/wire/protobuf_message.h"

static struct json_rules rules_of(const char *const *always)
{
  static const char *const text_fields[] = { "key",  "exclude", "exclude_seen_by", "items",
                                             "like", "explain", "likes_missing",   NULL };

  return (struct json_rules){
    .list_type = &sluice__v1__vector__descriptor,
    .list_field = "values",
    .plain_type = &sluice__v1__value__descriptor,
    .text_fields = text_fields,
    .always = always,
  };
}

/* Limits on the elements of repeated fields, in both formats. */
static const struct message_limit limits[] = {
  { "parts", WIRE_PARTS_MAX },
  { "attributes", ATTRIBUTES_MAX },
  { "parameters", QUERY_PARAMETERS_MAX },
  { "list", QUERY_PARAMETER_VALUES_MAX }, /* of a plain JSON value */
  { "texts", QUERY_PARAMETER_VALUES_MAX },
  { "exclude", QUERY_EXCLUDE_MAX },
  { "explain", QUERY_EXPLAIN_MAX },
  { "likes", QUERY_LIKES_MAX },
  { "boosts", QUERY_BOOSTS_MAX },
  { "at_least", QUERY_AT_LEAST_MAX },
  { "at_least_seen", QUERY_AT_LEAST_MAX },
  { "items", SEEN_ITEMS_MAX },
  { NULL, 0 },
};

struct wire_limit wire_limit_begin(struct region *r, size_t value_bytes)
{
  struct wire_limit limit = { .region = r, .bytes = WIRE_TAKEN_MAX, .before = r->limit_bytes };

  if (value_bytes < (WIRE_TAKEN_MAX - WIRE_TAKEN_MORE) / WIRE_TAKEN_TIMES)
    limit.bytes = value_bytes * WIRE_TAKEN_TIMES + WIRE_TAKEN_MORE;
  if (!limit.before || r->taken_bytes + limit.bytes < limit.before)
    r->limit_bytes = r->taken_bytes + limit.bytes;
  return limit;
}

err_t wire_limit_end(const struct wire_limit *limit, err_code_t err, err_code_t field_error)
{
  limit->region->limit_bytes = limit->before;
  if (err == ERR_TOO_LARGE)
    FAIL(field_error, "the message takes more than %zu bytes of memory to decode", limit->bytes);
  return err;
}

static err_t verify_size(err_code_t code, struct span value, size_t max)
{
  if (value.n > max)
    FAIL(code, "%zu bytes are more than the limit of %zu for a message", value.n, max);
  return ERR_OK;
}

err_t wire_verify_value(struct span value)
{
  return verify_size(ERR_TOO_LARGE, value, WIRE_VALUE_MAX);
}

/* JSON whose first byte is a blank is not told from protobuf: a line feed begins most protobuf messages. */
static bool looks_like_json(struct span value)
{
  size_t i = json_text_blanks(value);

  return i < value.n && value.p[i] == '{';
}

static err_t read_protobuf(struct span value, const ProtobufCMessageDescriptor *type, err_code_t field_error,
                           struct region *r, ProtobufCMessage **out)
{
  err_code_t err = protobuf_message_read(value, type, limits, field_error, r, out);

  if (err == ERR_WIRE && looks_like_json(value))
    FAIL(ERR_WIRE, "%s (if it is JSON, send the header content-type: application/json)", err_message());
  return err;
}

static err_t read_message(struct span value, enum wire_format format, const ProtobufCMessageDescriptor *type,
                          err_code_t field_error, struct region *r, ProtobufCMessage **out)
{
  if (format == WIRE_PROTOBUF)
    return read_protobuf(value, type, field_error, r, out);

  struct json_rules rules = rules_of(NULL);
  rules.limits = limits;
  return json_message_read(value, type, &rules, field_error, r, out);
}

err_t wire_message_read(struct span value, enum wire_format format, const ProtobufCMessageDescriptor *type,
                        err_code_t field_error, struct region *r, ProtobufCMessage **out)
{
  TRY(verify_size(ERR_WIRE, value, WIRE_VALUE_MAX));
  return read_message(value, format, type, field_error, r, out);
}

err_t wire_message_read_ours(struct span value, enum wire_format format, const ProtobufCMessageDescriptor *type,
                             struct region *r, ProtobufCMessage **out)
{
  TRY(verify_size(ERR_WIRE, value, WIRE_PARTIAL_MAX));
  return read_message(value, format, type, ERR_WIRE, r, out);
}

err_t wire_message_write(const ProtobufCMessage *message, enum wire_format format, const char *const *always,
                         struct region *r, struct span *out)
{
  if (format == WIRE_JSON) {
    struct json_rules rules = rules_of(always);
    return json_message_write(message, &rules, r, out);
  }

  size_t n = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes;
  TRY(region_array(r, n, 1, &bytes));
  protobuf_c_message_pack(message, bytes);
  *out = span_of(bytes, n);
  return ERR_OK;
}

static bool find_type(int type, enum numbers_type *out)
{
  switch (type) {
  case SLUICE__V1__VECTOR__TYPE__F32:
    *out = NUMBERS_F32;
    return true;
  case SLUICE__V1__VECTOR__TYPE__F16:
    *out = NUMBERS_F16;
    return true;
  case SLUICE__V1__VECTOR__TYPE__BF16:
    *out = NUMBERS_BF16;
    return true;
  }
  return false; /* proto3 accepts any number in an enum */
}

static err_t read_data(const Sluice__V1__Vector *vector, const char *path, err_code_t field_error, struct region *r,
                       struct floats *out)
{
  struct span data = span_of(vector->data.data, vector->data.len);
  enum numbers_type type;
  float *v;

  if (!find_type((int)vector->type, &type))
    FAIL(field_error, "%s.type: %d is not F32 (0), F16 (1) or BF16 (2)", path, (int)vector->type);
  if (data.n % numbers_width(type) != 0)
    FAIL(field_error, "%s.data has %zu bytes, not a multiple of %zu (%s)", path, data.n, numbers_width(type),
         numbers_name(type));
  TRY(region_array(r, data.n / numbers_width(type), sizeof *v, &v));
  numbers_decode(data, type, v);
  *out = (struct floats){ v, data.n / numbers_width(type) };
  return ERR_OK;
}

err_t wire_vector_read(const Sluice__V1__Vector *vector, const char *path, err_code_t field_error, struct region *r,
                       struct floats *out)
{
  struct floats floats = { 0 };

  if (vector && vector->data.len > 0 && vector->n_values > 0)
    FAIL(field_error, "%s has both data and values", path);
  if (vector && vector->data.len > 0)
    TRY(read_data(vector, path, field_error, r, &floats));
  else if (vector && vector->n_values > 0)
    floats = (struct floats){ vector->values, vector->n_values };

  size_t bad = numbers_find_not_finite(floats.v, floats.n);
  if (bad < floats.n)
    FAIL(field_error, "%s: number %zu is not finite", path, bad);
  *out = floats;
  return ERR_OK;
}
