/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the fields of protobuf-c messages through their descriptors.
 *
 * Thread: any. Blocks: no. Allocates: no.
 */
#ifndef INGEST_MESSAGE_FIELD_H
#define INGEST_MESSAGE_FIELD_H

#include <protobuf-c/protobuf-c.h>

#include "base/span.h"

/* Return the size of one value in the message's C struct. */
size_t message_field_size(const ProtobufCFieldDescriptor *field);

/* Return the address of a field in the message: of its value, or of the pointer to the elements of a repeated field. */
void *message_field_at(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* Return the address of the number of elements of a repeated field. */
size_t *message_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* Is the field a map with text keys? protobuf represents it as a repeated message with a `key` and a `value`. */
bool message_field_is_map(const ProtobufCFieldDescriptor *field);

/* Find a field by its name, in snake_case as in the schema or in lowerCamelCase as in JSON. Returns NULL if there is
 * none.
 */
const ProtobufCFieldDescriptor *message_field_find(const ProtobufCMessageDescriptor *type, const char *name);

/* Is the field's name in a list that ends with NULL? A NULL list is empty. */
bool message_field_is_in(const ProtobufCFieldDescriptor *field, const char *const *names);

/* A limit on the number of elements of a repeated field. */
struct message_limit {
  const char *field; /* the name of the field, in any message */
  size_t most;
};

/* Return the limit of a field, or SIZE_MAX if it has none.
 *
 * limits  a list that ends with a field of NULL; a NULL list is empty
 */
size_t message_field_limit(const ProtobufCFieldDescriptor *field, const struct message_limit *limits);

/* Is the field set? A field without presence is set if it differs from its default. */
bool message_field_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* Mark a field as set, if the message keeps such a mark for it. */
void message_field_mark(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* The same two functions, for a field given by its name. They work for an `optional` field whether the code generator
 * made it a flag or a oneof of one field. */
bool message_has(const ProtobufCMessage *message, const char *name);
void message_mark(ProtobufCMessage *message, const char *name);

#endif
