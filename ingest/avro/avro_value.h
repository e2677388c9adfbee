/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a value of Avro's binary form as JSON. Thread: any. Blocks: no. */
#ifndef INGEST_AVRO_VALUE_H
#define INGEST_AVRO_VALUE_H

#include "base/span.h"
#include "ingest/avro/avro_schema.h"

/* Most values in one record, lists and their elements counted: as many as JSON may have. */
enum { AVRO_VALUES_MAX = 1 << 20 };

/* Read a value as JSON: a record and a map are objects, an enum is text, a union is the value of its branch. Bytes are
 * Base64 text, a decimal of up to 8 bytes is text such as "12.50". Dates and times are milliseconds since 1970, rounded
 * down. A number that is not finite is the text "NaN", "Infinity" or "-Infinity".
 *
 * out  the caller releases it with json_decref()
 *
 * Returns ERR_WIRE, with the place, when the bytes are no such value, or more than one; ERR_MEMORY. */
err_t avro_value_read(const struct avro_type *type, struct span bytes, json_t **out);

#endif
