/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of protobuf-c messages, reached through their descriptors.
 *
 * Thread: any. Blocks: no. Allocates: no.
 */
#ifndef INGEST_MESSAGE_FIELD_H
#define INGEST_MESSAGE_FIELD_H

#include <protobuf-c/protobuf-c.h>

#include "base/span.h"

/* Bytes of one value in the message's C structure. */
size_t message_field_size(const ProtobufCFieldDescriptor *field);

/* Where the field lies in the message: the value, or for a repeated field the pointer to its elements. */
void *message_field_at(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* The number of elements of a repeated field. */
size_t *message_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* A map with text as keys: to protobuf, a repeated message of a `key` and a `value`. */
bool message_field_is_map(const ProtobufCFieldDescriptor *field);

/* Find a field by its name, as in the schema (snake_case) or as JSON has it (lowerCamelCase); NULL where there is
 * none. */
const ProtobufCFieldDescriptor *message_field_find(const ProtobufCMessageDescriptor *type, const char *name);

/* Whether the field's name is in a list that ends with NULL; no list is an empty one. */
bool message_field_is_in(const ProtobufCFieldDescriptor *field, const char *const *names);

/* The most elements that a repeated field may have. */
struct message_limit {
  const char *field; /* its name, in whichever message */
  size_t most;
};

/* limits  end with a field of NULL; NULL is an empty list. SIZE_MAX where the field has none. */
size_t message_field_limit(const ProtobufCFieldDescriptor *field, const struct message_limit *limits);

/* Whether a field was given; one without presence, whether it differs from its default. */
bool message_field_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* Mark a field as given, where the message keeps a mark for it. */
void message_field_mark(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* The same two for a field of that name. An `optional` field is a flag or a oneof of one field, as the code generator
 * has it: these do not care. */
bool message_has(const ProtobufCMessage *message, const char *name);
void message_mark(ProtobufCMessage *message, const char *name);

#endif
