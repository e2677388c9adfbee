/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a message of Protobuf's binary form as JSON. Thread: any. Blocks: no. */
#ifndef INGEST_PROTOBUF_VALUE_H
#define INGEST_PROTOBUF_VALUE_H

#include <jansson.h>

#include "base/err.h"
#include "base/span.h"
#include "ingest/protobuf/protobuf_budget.h"
#include "ingest/protobuf/protobuf_schema.h"

/* Read a message as JSON. Members have the names of the .proto file. A message and a map are objects, an enum is its
 * name, or its number if that has none. Bytes are Base64 text, integers beyond 63 bits are their digits. A
 * google.protobuf.Timestamp is milliseconds since 1970, rounded down; a wrapper such as DoubleValue is the value in it.
 * A number that is not finite is the text "NaN", "Infinity" or "-Infinity".
 *
 * A field that is absent is not there if its message can tell so. Else it has its default, as it has for everybody who
 * reads the message: 0, "", false, or an empty list or map.
 *
 * out  the caller releases it with json_decref()
 *
 * Returns ERR_WIRE, with the place, when the bytes are no such message, or have more than PROTOBUF_VALUES_MAX values:
 * each element, and each field that is written or has a default. A message counts as four, which is about the memory
 * that it takes, and one more for eight fields of its type. ERR_MEMORY. */
err_t protobuf_value_read(const struct protobuf_type *type, struct span bytes, json_t **out);

#endif
