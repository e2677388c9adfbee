/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to and from protobuf-c messages, by reflection: any message type, no code per field.
 *
 *   messages      objects; fields by their name in the schema or in lowerCamelCase; null is the same as absent; of a
 *                 member that is there twice the last one holds
 *   maps          objects
 *   repeated      lists
 *   integers      numbers, or text of digits; written as numbers (as text where they are over 2^63 - 1)
 *   floats        numbers; written with 9 digits, which give back the same f32
 *   enums         names or numbers; written as names
 *   bytes         lists of 0..255 or Base64 text, written as lists; fields that hold text (text_fields) as text, and
 *                 where that text is not UTF-8 as {"base64": "..."}, which every bytes field takes
 *
 * Fields without a value are not written, but for those in `always`. Thread: any. Blocks: no.
 */
#ifndef INGEST_JSON_MESSAGE_H
#define INGEST_JSON_MESSAGE_H

#include "base/err.h"
#include "base/region.h"
#include "ingest/message_field.h"

/* What JSON does that the schema does not say. Lists of names end with NULL; the lists may be NULL. */
struct json_rules {
  const ProtobufCMessageDescriptor *list_type; /* a message that may be written as a list: the elements of list_field */
  const char *list_field;
  const char *const *text_fields; /* bytes fields that hold text */
  const char *const *always;      /* fields that are written even if they are zero or empty */
  const struct message_limit *limits; /* most elements of fields that are read */
};

/* Most memory that parsing a text may take, by json_text_cost(): a list of a million numbers. */
enum { JSON_COST_MAX = 64 << 20 };

/* Read a message.
 *
 * field_error  the code for what is JSON but not this message
 * out          in the region, borrows nothing from `text`. Written on success, and with field_error and ERR_TOO_LARGE:
 *              then it holds the fields that could be read, so that a caller can tell whose message it was
 *
 * Returns ERR_OK; ERR_WIRE when the text is not one JSON object or would take more than JSON_COST_MAX to parse;
 * field_error when a field is unknown or has a wrong value: the message names the first such field and what is
 * expected; ERR_TOO_LARGE when the first field that cannot be read goes beyond the region's limit. Allocates: in the
 * region, and jansson's own.
 */
err_t json_message_read(struct span text, const ProtobufCMessageDescriptor *type, const struct json_rules *rules,
                        err_code_t field_error, struct region *r, ProtobufCMessage **out);

/* Write a message as compact JSON, zero-terminated in the region.
 *
 * Returns ERR_OK; ERR_WIRE when it holds what JSON cannot: a string that is not UTF-8, a float that is not finite.
 */
err_t json_message_write(const ProtobufCMessage *message, const struct json_rules *rules, struct region *r,
                         struct span *out);

#endif
