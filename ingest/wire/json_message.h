/* SPDX-License-Identifier: Apache-2.0 */
/* Converting between JSON and protobuf-c messages. It works on message descriptors, so it handles any message type
 * without code for each field.
 *
 *   messages      objects; fields have their schema names or lowerCamelCase; null means absent; if a member occurs
 *                 twice, the last one counts
 *   maps          objects
 *   repeated      lists
 *   integers      numbers, or text of digits; written as numbers, above 2^63 - 1 as text
 *   floats        numbers; written with 9 digits, from which the same f32 can be read; all with 17 if one is f64
 *   enums         names or numbers; written as names
 *   bytes         lists of 0..255 or Base64 text; written as lists
 *   plain type    null, true, a number, text, or a list of these: the kind says which field it is. An object of its
 *                 fields can be read too
 *   text bytes    bytes fields in text_fields: text; written as {"base64": "..."} if they are not UTF-8. Every bytes
 *                 field can be read in that form
 *
 * A field without a value is not written, unless `always` names it. Thread: any. Blocks: no.
 */
#ifndef INGEST_JSON_MESSAGE_H
#define INGEST_JSON_MESSAGE_H

#include "base/err.h"
#include "base/region.h"
#include "ingest/wire/message_field.h"

/* Rules of the JSON form that the schema does not have. Lists of names end with NULL; the lists may be NULL. */
struct json_rules {
  const ProtobufCMessageDescriptor *list_type; /* a message that may be a list: the elements of its list_field */
  const char *list_field;
  const ProtobufCMessageDescriptor *plain_type; /* see above; each kind of value has one field */
  const char *const *text_fields;               /* bytes fields that hold text */
  const char *const *always;                    /* fields that are written even if they are zero or empty */
  const struct message_limit *limits;           /* limits on the number of elements, for reading */
};

/* Read a message.
 *
 * field_error  the error code for a wrong field
 * out          lives in the region and borrows nothing from `text`. Also written on field_error and ERR_TOO_LARGE: it
 *              then has the fields that could be read, and the caller can tell whose message it was
 *
 * Returns ERR_OK; ERR_WIRE when the text is not one JSON object, or would take too much memory to parse;
 * field_error when a field is unknown or has a wrong value: the message names the first such field and the expected
 * value; ERR_TOO_LARGE when the first field that cannot be read exceeds the region's limit. Allocates: in the region,
 * and jansson from the heap.
 */
err_t json_message_read(struct span text, const ProtobufCMessageDescriptor *type, const struct json_rules *rules,
                        err_code_t field_error, struct region *r, ProtobufCMessage **out);

/* Write a message as compact JSON. The text is zero-terminated and lives in the region.
 *
 * Returns ERR_OK; ERR_WIRE when JSON cannot express a value: a string that is not UTF-8, or a float that is not finite.
 */
err_t json_message_write(const ProtobufCMessage *message, const struct json_rules *rules, struct region *r,
                         struct span *out);

#endif
