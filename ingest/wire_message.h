/* SPDX-License-Identifier: Apache-2.0 */
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

/* Bound what decoding a value may take of the region: WIRE_TAKEN_TIMES its size and WIRE_TAKEN_MORE, and never above
 * WIRE_TAKEN_MAX. The most that honest messages take is 28 times their size, for keys of two bytes: protobuf-c keeps 32
 * to 64 bytes of each field while it reads. Lists of empty messages take more, but have at most 4,096 elements. */
enum { WIRE_TAKEN_TIMES = 32, WIRE_TAKEN_MORE = 1 << 20, WIRE_TAKEN_MAX = 64 << 20 };

/* A decoded item that takes more is stripped of what only decoding needed. */
enum { WIRE_KEPT_WHOLE = 256 << 10 };

struct wire_limit {
  struct region *region;
  size_t bytes;  /* that this value may take */
  size_t before; /* the region's limit otherwise */
};

struct wire_limit wire_limit_begin(struct region *r, size_t value_bytes);

/* Put the region's limit back. Returns `err`, what decoding came to; field_error for ERR_TOO_LARGE. */
err_t wire_limit_end(const struct wire_limit *limit, err_code_t err, err_code_t field_error);

/* Read a value as a message of `type`, allocated in the region.
 *
 * Returns ERR_OK; ERR_WIRE when it is none; field_error when a field is wrong, and ERR_TOO_LARGE beyond the region's
 * limit: with both `out` is written too and has what could be read (of protobuf its texts alone), so that a caller can
 * tell whose message it was.
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
