/* SPDX-License-Identifier: Apache-2.0 */
/* Reading plain values: JSON values whose kind says which field of a message they are (json_rules.plain_type).
 * Private to the files of ingest/wire/json_message.h. Thread: the one that owns the region. */
#ifndef INGEST_JSON_PLAIN_H
#define INGEST_JSON_PLAIN_H

#include "ingest/wire/json_scalar.h"

/* Read a value that is not an object into `message`, which has been initialised. null sets no field. A list becomes the
 * message's message field: each element goes to the repeated field of its kind. */
err_t json_plain_read(struct json_reader *rd, const struct json_place *at, json_t *json, ProtobufCMessage *message);

#endif
