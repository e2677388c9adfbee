/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding protobuf bytes to protobuf-c messages, with checks that protobuf-c lacks.
 *
 * protobuf-c merges two occurrences of a message field by allocating both again, so n occurrences take n^2 memory. It
 * also accepts strings with a zero byte, and fields of number 0. So the bytes are verified first.
 *
 * Thread: any. Blocks: no.
 */
#ifndef INGEST_PROTOBUF_MESSAGE_H
#define INGEST_PROTOBUF_MESSAGE_H

#include "base/err.h"
#include "base/region.h"
#include "ingest/wire/message_field.h"

/* Read a message.
 *
 * limits       of repeated fields: see message_field_limit()
 * field_error  the error code for a wrong field
 * out          lives in the region and borrows nothing from `value`. Also written on field_error and ERR_TOO_LARGE: it
 *              then has the usable strings of the outermost message, and nothing else
 *
 * Returns ERR_OK; ERR_WIRE when the bytes are not a message of this type; field_error, naming the field, when a field
 * that is not repeated occurs twice (of a number the last one counts), a string has a zero byte, or a repeated field
 * has too many elements; ERR_TOO_LARGE beyond the region's limit; ERR_MEMORY. Allocates: in the region.
 */
err_t protobuf_message_read(struct span value, const ProtobufCMessageDescriptor *type,
                            const struct message_limit *limits, err_code_t field_error, struct region *r,
                            ProtobufCMessage **out);

#endif
