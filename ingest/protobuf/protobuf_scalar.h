/* SPDX-License-Identifier: Apache-2.0 */
/* Single values of Protobuf: numbers, enums, text and bytes. Thread: any. Blocks: no. */
#ifndef INGEST_PROTOBUF_SCALAR_H
#define INGEST_PROTOBUF_SCALAR_H

#include <jansson.h>

#include "ingest/protobuf/protobuf_schema.h"
#include "ingest/protobuf/protobuf_wire.h"

/* Return the wire type of a kind. */
enum protobuf_wire_type protobuf_scalar_wire(enum protobuf_kind kind);

/* Take a value of a field that is no message off the bytes. Returns ERR_WIRE with what is wrong, without the place;
 * ERR_MEMORY. */
err_t protobuf_scalar_take(const struct protobuf_field *field, struct span *bytes, json_t **out);

/* Make the default of such a field. Returns ERR_MEMORY. */
err_t protobuf_scalar_default(const struct protobuf_field *field, json_t **out);

#endif
