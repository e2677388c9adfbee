/* What the decoders and encoders of ingest/wire.h share: protobuf-c messages to and from both formats. Private to them.
 *
 * Thread: the one that owns the region. Blocks: no.
 */
#ifndef INGEST_WIRE_MESSAGE_H
#define INGEST_WIRE_MESSAGE_H

#include "ingest/wire.h"
#include "proto/sluice.pb-c.h"

/* Longest value that is looked at; and the most spaces that one item can name. */
enum { WIRE_VALUE_MAX = 4 << 20, WIRE_PARTS_MAX = 256 };

/* Read a value as a message of `type`, allocated in the region.
 *
 * Returns ERR_OK; ERR_WIRE when it is none; field_error when it is JSON with a wrong field: `out` is then written too
 * and has the fields that could be read.
 */
err_t wire_message_read(struct span value, enum wire_format format, const ProtobufCMessageDescriptor *type,
                        err_code_t field_error, struct region *r, ProtobufCMessage **out);

/* always  names of fields that JSON shows even if they are zero or empty, NULL at the end; NULL for none */
err_t wire_message_write(const ProtobufCMessage *message, enum wire_format format, const char *const *always,
                         struct region *r, struct span *out);

/* Numbers of a vector, checked to be finite.
 *
 * vector  NULL: no numbers
 * path    its place in the message, for the error
 * out     in the region
 */
err_t wire_vector_read(const Sluice__V1__Vector *vector, const char *path, err_code_t field_error, struct region *r,
                       struct floats *out);

#endif
