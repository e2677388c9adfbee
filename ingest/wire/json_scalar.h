/* SPDX-License-Identifier: Apache-2.0 */
/* Reading single values of JSON into fields of protobuf-c messages. A wrong value is an error that names its place.
 * Private to the files of ingest/wire/json_message.h and ingest/wire/mapping.h. Thread: the one that owns the region.
 */
#ifndef INGEST_JSON_SCALAR_H
#define INGEST_JSON_SCALAR_H

#include <jansson.h>

#include "ingest/wire/json_message.h"

enum { JSON_PATH_BYTES = 320 };

/* The reader's place in the message: a linked list on the stack. It is printed only for an error. */
struct json_place {
  const struct json_place *up;
  enum { JSON_PLACE_FIELD, JSON_PLACE_KEY, JSON_PLACE_INDEX } kind;
  const char *name; /* JSON_PLACE_FIELD, JSON_PLACE_KEY */
  size_t index;     /* JSON_PLACE_INDEX */
};

struct json_reader {
  const struct json_rules *rules;
  struct region *region;
  err_code_t field_error;
  bool has_large; /* see json_parse() */
  char path[JSON_PATH_BYTES];
};

/* Print a place, such as `parts["books"].vector[17]`, into the reader's buffer. */
const char *json_scalar_path(struct json_reader *rd, const struct json_place *at);

/* Return what a value is, such as "a list". */
const char *json_scalar_kind(const json_t *json);

/* Is it a number that was too large for jansson? */
bool json_scalar_is_large(const struct json_reader *rd, const json_t *json);

/* Is it an integer that was too large for jansson? */
bool json_scalar_is_large_integer(const struct json_reader *rd, const json_t *json);

/* Fail: at this place, `expected` was expected. */
err_t json_scalar_fail(struct json_reader *rd, const struct json_place *at, const char *expected, const json_t *json);

/* Read a value of any type that is not a message.
 *
 * slot  where to write the value; it has room for message_field_size(field) bytes
 */
err_t json_scalar_read(struct json_reader *rd, const struct json_place *at, const ProtobufCFieldDescriptor *field,
                       const json_t *json, void *slot);

/* Read values of one type each: a finite number, also one beyond 64 bits; an integer, also as text of digits; bytes
 * from Base64 text, or from a list of 0..255. The bytes live in the region. */
err_t json_scalar_float(struct json_reader *rd, const struct json_place *at, const json_t *json, float *out);
err_t json_scalar_double(struct json_reader *rd, const struct json_place *at, const json_t *json, double *out);
err_t json_scalar_int64(struct json_reader *rd, const struct json_place *at, const json_t *json, int64_t *out);
err_t json_scalar_base64(struct json_reader *rd, const struct json_place *at, const json_t *json,
                         ProtobufCBinaryData *out);
err_t json_scalar_byte_list(struct json_reader *rd, const struct json_place *at, const json_t *json,
                            ProtobufCBinaryData *out);

/* Verify the number of elements of a repeated field, or of a field that is a list in JSON. */
err_t json_scalar_verify_count(struct json_reader *rd, const struct json_place *at,
                               const ProtobufCFieldDescriptor *field, size_t n);

/* Make an empty message in the region. */
err_t json_scalar_new_message(struct json_reader *rd, const ProtobufCMessageDescriptor *type, ProtobufCMessage **out);

#endif
