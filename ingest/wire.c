#include "ingest/wire.h"

#include <strings.h>

#include "ingest/json_message.h"
#include "ingest/numbers.h"
#include "ingest/wire_message.h"

static const char json_type[] = "application/json";
static const char protobuf_type[] = "application/x-protobuf";

/* Whether a content type is `name`, in any case, with or without parameters ("; charset=utf-8"). */
static bool is_type(struct span content_type, const char *name)
{
  size_t n = strlen(name);

  if (content_type.n < n || strncasecmp((const char *)content_type.p, name, n) != 0)
    return false;
  return content_type.n == n || content_type.p[n] == ';' || content_type.p[n] == ' ';
}

enum wire_format wire_format_of(struct span value, struct span content_type)
{
  if (is_type(content_type, json_type))
    return WIRE_JSON;
  if (is_type(content_type, protobuf_type) || is_type(content_type, "application/protobuf"))
    return WIRE_PROTOBUF;
  return value.n > 0 && value.p[0] == '{' ? WIRE_JSON : WIRE_PROTOBUF; /* no protobuf field starts with that byte */
}

const char *wire_content_type(enum wire_format format)
{
  return format == WIRE_JSON ? json_type : protobuf_type;
}

static struct json_rules rules_of(const char *const *always)
{
  static const char *const text_fields[] = { "key", "exclude", NULL };

  return (struct json_rules){
    .list_type = &sluice__v1__vector__descriptor,
    .list_field = "values",
    .text_fields = text_fields,
    .always = always,
  };
}

/* protobuf-c's allocator on a region, which takes back all at once. */
struct region_allocator {
  struct region *region;
  bool is_exhausted;
};

static void *allocate(void *context, size_t size)
{
  struct region_allocator *a = context;
  void *p;

  if (region_array(a->region, 1, size, &p) == ERR_OK)
    return p;
  a->is_exhausted = true;
  return NULL;
}

static void leave(void *context, void *p)
{
  (void)context;
  (void)p;
}

/* Read a varint; 0 bytes where there is none. */
static size_t read_varint(struct span bytes, uint64_t *out)
{
  uint64_t value = 0;

  for (size_t i = 0; i < bytes.n && i < 10; i++) {
    value |= (uint64_t)(bytes.p[i] & 0x7f) << 7 * i;
    if (bytes.p[i] < 0x80) {
      *out = value;
      return i + 1;
    }
  }
  return 0;
}

/* One field of an encoded message. */
struct wire_field {
  uint32_t id;
  bool has_content; /* of wire type "length-delimited" */
  struct span content;
};

/* Take the next field off the bytes; false where they do not start with one: they are untouched then. */
static bool take_field(struct span *bytes, struct wire_field *out)
{
  uint64_t tag, value;
  size_t n = read_varint(*bytes, &tag);

  if (n == 0 || tag >> 3 == 0)
    return false;
  struct span rest = span_of(bytes->p + n, bytes->n - n);
  *out = (struct wire_field){ .id = (uint32_t)(tag >> 3), .has_content = (tag & 7) == 2 };
  switch (tag & 7) {
  case 0:
    n = read_varint(rest, &value);
    break;
  case 1:
    n = 8;
    break;
  case 2:
    n = read_varint(rest, &value);
    break;
  case 5:
    n = 4;
    break;
  default:
    return false;
  }
  if (n == 0 || n > rest.n || (out->has_content && value > rest.n - n))
    return false;
  if (out->has_content) {
    out->content = span_of(rest.p + n, value);
    n += value;
  }
  *bytes = span_of(rest.p + n, rest.n - n);
  return true;
}

/* Verify what protobuf-c lets through: a field of number 0, which is how a schema registry's framing starts, and a zero
 * byte in a string, which would silently end it there: `books\0x` is not the space `books`. */
static err_t verify_encoding(struct span bytes, const ProtobufCMessageDescriptor *type)
{
  struct wire_field at;

  while (bytes.n > 0) {
    if (!take_field(&bytes, &at))
      FAIL(ERR_WIRE, "not a protobuf message of type %s%s", type->name,
           bytes.p[0] == 0 ? " (a schema registry's framing is not understood: send the bare message)" : "");
    const ProtobufCFieldDescriptor *field =
        at.has_content ? protobuf_c_message_descriptor_get_field(type, at.id) : NULL;
    if (!field)
      continue;
    if (field->type == PROTOBUF_C_TYPE_STRING && at.content.n > 0 && memchr(at.content.p, 0, at.content.n))
      FAIL(ERR_WIRE, "%s.%s holds a zero byte", type->name, field->name);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
      TRY(verify_encoding(at.content, field->descriptor));
  }
  return ERR_OK;
}

static err_t read_protobuf(struct span value, const ProtobufCMessageDescriptor *type, struct region *r,
                           ProtobufCMessage **out)
{
  struct region_allocator context = { .region = r };
  ProtobufCAllocator allocator = { .alloc = allocate, .free = leave, .allocator_data = &context };

  TRY(verify_encoding(value, type));
  ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, value.n, value.p);
  if (context.is_exhausted)
    return ERR_MEMORY;
  if (!message)
    FAIL(ERR_WIRE, "not a protobuf message of type %s", type->name);
  *out = message;
  return ERR_OK;
}

err_t wire_message_read(struct span value, enum wire_format format, const ProtobufCMessageDescriptor *type,
                        err_code_t field_error, struct region *r, ProtobufCMessage **out)
{
  if (value.n > WIRE_VALUE_MAX)
    FAIL(ERR_WIRE, "%zu bytes are more than the %d that a message can have", value.n, (int)WIRE_VALUE_MAX);
  if (format == WIRE_PROTOBUF)
    return read_protobuf(value, type, r, out);

  struct json_rules rules = rules_of(NULL);
  return json_message_read(value, type, &rules, field_error, r, out);
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
  return false; /* proto3 lets any number through */
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
