/* SPDX-License-Identifier: Apache-2.0 */
/* The message that the values of a topic are, from a file with a descriptor set.
 *
 * Thread: any, once it is open.
 */
#ifndef INGEST_PROTOBUF_SOURCE_H
#define INGEST_PROTOBUF_SOURCE_H

#include "ingest/json/json_path.h"
#include "ingest/protobuf/protobuf_schema.h"

struct protobuf_source;

/* Read a file.
 *
 * message  the full name of the message
 *
 * Returns ERR_CONFIG with the path, what is wrong and what to do; ERR_SYSTEM; ERR_MEMORY. Blocks: on the file. */
err_t protobuf_source_open(const char *path, const char *message, struct protobuf_source **out);
void protobuf_source_close(struct protobuf_source **s);

/* It is valid until the source is closed. */
const struct protobuf_type *protobuf_source_type(const struct protobuf_source *s);

/* Verify that a path leads to a field.
 *
 * row  the field of the message where paths start; NULL: they start in the message
 *
 * Returns ERR_CONFIG with the first step that leads nowhere. */
err_t protobuf_source_verify_path(const struct protobuf_source *s, const char *row, const struct json_path *path);

#endif
