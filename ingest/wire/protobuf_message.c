/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying protobuf bytes field by field, then decoding them with protobuf-c. */
#include "ingest/wire/protobuf_message.h"

#include <assert.h>
#include <stdio.h>

#include "ingest/protobuf/protobuf_wire.h"
#include "ingest/protobuf/region_allocator.h"

enum { FIELDS_MAX = 32, PATH_BYTES = 128 };

/* One field of an encoded message. */
struct wire_field {
  uint32_t id;
  bool has_content; /* of wire type "length-delimited" */
  struct span content;
};

/* Take the next field off the bytes. Returns false, and leaves the bytes unchanged, if they do not start with a field.
 * protobuf-c reads no groups. */
static bool take_field(struct span *bytes, struct wire_field *out)
{
  struct span rest = *bytes;
  struct protobuf_tag tag;

  if (protobuf_wire_take_tag(&rest, &tag) != ERR_OK || tag.type == PROTOBUF_WIRE_GROUP)
    return false;
  *out = (struct wire_field){ .id = tag.number, .has_content = tag.type == PROTOBUF_WIRE_BYTES };
  err_code_t err = out->has_content ? protobuf_wire_take_bytes(&rest, &out->content) : protobuf_wire_skip(&rest, &tag);
  if (err != ERR_OK)
    return false;
  *bytes = rest;
  return true;
}

/* Find the descriptor of a message, string or bytes field; NULL for numbers and unknown fields. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type, const struct wire_field *at)
{
  return at->has_content ? protobuf_c_message_descriptor_get_field(type, at->id) : NULL;
}

static bool is_text(const ProtobufCFieldDescriptor *field)
{
  return field->type == PROTOBUF_C_TYPE_STRING && field->label != PROTOBUF_C_LABEL_REPEATED;
}

static bool has_zero(struct span text)
{
  return text.n > 0 && memchr(text.p, 0, text.n);
}

/* ---- Verifying ---- */

/* The verifier's place in the message: a linked list on the stack. It is printed only for an error. */
struct place {
  const struct place *up;
  const ProtobufCFieldDescriptor *field;
  size_t count; /* how often the field has occurred; 0: the place is all of it */
};

static size_t print_path(const struct place *at, char *out, size_t size)
{
  size_t n = at->up ? print_path(at->up, out, size) : 0;
  bool is_element = at->count > 0 && at->field->label == PROTOBUF_C_LABEL_REPEATED && !message_field_is_map(at->field);
  int more = is_element ? snprintf(out + n, size - n, "%s%s[%zu]", n ? "." : "", at->field->name, at->count - 1)
                        : snprintf(out + n, size - n, "%s%s", n ? "." : "", at->field->name);

  n += more > 0 ? (size_t)more : 0;
  return n < size ? n : size - 1;
}

struct verifier {
  const struct message_limit *limits;
  err_code_t field_error;
};

static err_t fail_field(const struct verifier *v, const struct place *at, const char *reason)
{
  char path[PATH_BYTES];

  print_path(at, path, sizeof path);
  FAIL(v->field_error, "%s: %s", path, reason);
}

/* Verify one length-delimited field. */
static err_t verify_content(const struct verifier *v, const struct place *at, struct span content)
{
  const ProtobufCFieldDescriptor *field = at->field;
  bool is_number = field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_BYTES &&
                   field->type != PROTOBUF_C_TYPE_MESSAGE;

  if (field->label != PROTOBUF_C_LABEL_REPEATED && at->count > 1 && !is_number)
    return fail_field(v, at, "it occurs twice");
  if (field->type == PROTOBUF_C_TYPE_STRING && has_zero(content))
    return fail_field(v, at, "text with a zero character");
  return ERR_OK;
}

static err_t verify_counts(const struct verifier *v, const struct place *at, const ProtobufCMessageDescriptor *type,
                           const size_t *counts)
{
  char reason[64];

  for (unsigned i = 0; i < type->n_fields; i++) {
    size_t most = counts[i] ? message_field_limit(&type->fields[i], v->limits) : 0;
    if (counts[i] <= most)
      continue;
    snprintf(reason, sizeof reason, "%zu elements, at most %zu", counts[i], most);
    return fail_field(v, &(struct place){ .up = at, .field = &type->fields[i] }, reason);
  }
  return ERR_OK;
}

/* Verify a message and the messages in it. The schema limits the depth of the recursion, not the bytes. The first wrong
 * field is reported only if all bytes are a message; otherwise the error is ERR_WIRE. */
static err_t verify_message(const struct verifier *v, const struct place *at, struct span bytes,
                            const ProtobufCMessageDescriptor *type)
{
  size_t counts[FIELDS_MAX] = { 0 };
  struct wire_field taken;
  err_code_t err = ERR_OK;

  assert(type->n_fields <= FIELDS_MAX);
  while (bytes.n > 0) {
    if (!take_field(&bytes, &taken))
      FAIL(ERR_WIRE, "not a protobuf message of type %s%s", type->name,
           bytes.p[0] == 0 ? " (framed for a schema registry? See catalogue.framing; queries are not framed)" : "");
    const ProtobufCFieldDescriptor *field = find_field(type, &taken);
    if (!field || err != ERR_OK)
      continue;
    struct place child = { .up = at, .field = field, .count = ++counts[field - type->fields] };
    err = verify_content(v, &child, taken.content);
    if (err == ERR_OK && field->type == PROTOBUF_C_TYPE_MESSAGE)
      err = verify_message(v, &child, taken.content, field->descriptor);
    if (err == ERR_WIRE)
      return err;
  }
  return err == ERR_OK ? verify_counts(v, at, type, counts) : err;
}

/* ---- Reading ---- */

static err_t unpack(struct span value, const ProtobufCMessageDescriptor *type, struct region *r, ProtobufCMessage **out)
{
  struct region_allocator context = { .region = r };
  ProtobufCAllocator allocator = region_allocator_of(&context);
  ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, value.n, value.p);

  if (!message && context.err != ERR_OK)
    return context.err;
  if (!message)
    FAIL(ERR_WIRE, "not a protobuf message of type %s", type->name);
  *out = message;
  return ERR_OK;
}

/* Decode only the strings of the outermost message, without those that occur twice or have a zero byte. */
static err_t read_texts(struct span value, const ProtobufCMessageDescriptor *type, struct region *r,
                        ProtobufCMessage **out)
{
  ProtobufCMessage *message;
  bool is_seen[FIELDS_MAX] = { 0 };
  struct wire_field taken;
  struct span text;

  TRY(region_array(r, 1, type->sizeof_message, &message));
  protobuf_c_message_init(type, message);
  while (value.n > 0 && take_field(&value, &taken)) {
    const ProtobufCFieldDescriptor *field = find_field(type, &taken);
    if (!field || !is_text(field))
      continue;
    bool is_usable = !is_seen[field - type->fields] && !has_zero(taken.content);
    is_seen[field - type->fields] = true;
    TRY(region_copy(r, is_usable ? taken.content : (struct span){ 0 }, &text));
    *(const char **)message_field_at(message, field) = (const char *)text.p;
  }
  *out = message;
  return ERR_OK;
}

err_t protobuf_message_read(struct span value, const ProtobufCMessageDescriptor *type,
                            const struct message_limit *limits, err_code_t field_error, struct region *r,
                            ProtobufCMessage **out)
{
  struct verifier v = { .limits = limits, .field_error = field_error };
  struct region_mark start = region_mark(r);
  struct err_kept kept;

  err_code_t err = verify_message(&v, NULL, value, type);
  if (err == ERR_OK)
    err = unpack(value, type, r, out);
  if (err == ERR_OK || (err != field_error && err != ERR_TOO_LARGE))
    return err;
  err_keep(err, &kept);
  region_rewind(r, start);
  TRY(read_texts(value, type, r, out));
  return err_give_back(&kept);
}
