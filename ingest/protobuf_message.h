/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of protobuf to protobuf-c messages, with the checks that protobuf-c leaves out.
 *
 * protobuf-c merges a message field that is there twice by allocating both anew: n times take n^2 memory. It lets texts
 * with a zero byte through, and fields of number 0. So the bytes are verified first. Thread: any. Blocks: no.
 */
#ifndef INGEST_PROTOBUF_MESSAGE_H
#define INGEST_PROTOBUF_MESSAGE_H

#include "base/err.h"
#include "base/region.h"
#include "ingest/message_field.h"

/* Read a message.
 *
 * limits       most elements of repeated fields, see message_field_limit()
 * field_error  the code for what is protobuf but not this message
 * out          in the region, borrows nothing from `value`. Written on success, and with field_error and ERR_TOO_LARGE:
 *              then it holds the texts of the outermost message that can be used, and nothing else
 *
 * Returns ERR_OK; ERR_WIRE when it is not a message of this type; field_error, naming the field, when a field that is
 * not repeated is there twice (numbers excepted: the last one holds), a text has a zero byte or a repeated field has
 * too many elements; ERR_TOO_LARGE beyond the region's limit; ERR_MEMORY. Allocates: in the region.
 */
err_t protobuf_message_read(struct span value, const ProtobufCMessageDescriptor *type,
                            const struct message_limit *limits, err_code_t field_error, struct region *r,
                            ProtobufCMessage **out);

#endif
