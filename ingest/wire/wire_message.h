/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing protobuf-c messages in both formats, with memory limits. Private to the files of
 * ingest/wire/wire.h and ingest/wire/mapped_item.h.
 *
 * Thread: the one that owns the region. Blocks: no.
 */
#ifndef INGEST_WIRE_MESSAGE_H
#define INGEST_WIRE_MESSAGE_H

#include "ingest/wire/wire.h"
#include "proto/sluice.pb-c.h"

/* Limits on the bytes of a value, and on the spaces that an item can name. */
enum { WIRE_VALUE_MAX = 4 << 20, WIRE_PARTS_MAX = 256 };

/* Limit on the bytes of an answer, and of a shard's part with an answer in it: the largest has 100,000 hits
 * (query.max_k), with keys and values of 256 bytes, and with attributes of 16 MiB in the engine. On the wire each of
 * these also carries its name. Brokers take so much only if they are told to. */
enum { WIRE_PARTIAL_MAX = 96 << 20 };

/* Limit on the memory that decoding a value takes: WIRE_TAKEN_TIMES its size plus WIRE_TAKEN_MORE, but at most
 * WIRE_TAKEN_MAX. Honest messages take up to 28 times their size, for keys of two bytes: protobuf-c keeps 32 to 64
 * bytes for each field while it reads. Lists of empty messages take more, but have at most 4,096 elements. */
enum { WIRE_TAKEN_TIMES = 32, WIRE_TAKEN_MORE = 1 << 20, WIRE_TAKEN_MAX = 64 << 20 };

/* A decoded item or seen record that takes more is copied, and the memory that only decoding needed is freed. */
enum { WIRE_KEPT_WHOLE = 256 << 10 };

/* Verify that a value from outside is not too large to be decoded. Returns ERR_OK; ERR_TOO_LARGE. */
err_t wire_verify_value(struct span value);

struct wire_limit {
  struct region *region;
  size_t bytes;  /* limit for this value */
  size_t before; /* the region's former limit */
};

/* Set the region's limit for decoding a value. */
struct wire_limit wire_limit_begin(struct region *r, size_t value_bytes);

/* Restore the region's limit. Returns `err`, the result of decoding, but field_error for ERR_TOO_LARGE. */
err_t wire_limit_end(const struct wire_limit *limit, err_code_t err, err_code_t field_error);

/* Read a value as a message of `type`, allocated in the region.
 *
 * Returns ERR_OK; ERR_WIRE when it is not such a message; field_error when a field is wrong; ERR_TOO_LARGE beyond the
 * region's limit. On the last two `out` is also written, with the fields that could be read (of protobuf, strings
 * only). So the caller can tell whose message it was.
 */
err_t wire_message_read(struct span value, enum wire_format format, const ProtobufCMessageDescriptor *type,
                        err_code_t field_error, struct region *r, ProtobufCMessage **out);

/* Read a value that a daemon of ours has written, of up to WIRE_PARTIAL_MAX bytes. Returns ERR_OK; ERR_WIRE;
 * ERR_TOO_LARGE beyond the region's limit; ERR_MEMORY. */
err_t wire_message_read_ours(struct span value, enum wire_format format, const ProtobufCMessageDescriptor *type,
                             struct region *r, ProtobufCMessage **out);

/* Write a message.
 *
 * always  names of fields that JSON shows even if they are zero or empty; ends with NULL. NULL: none
 */
err_t wire_message_write(const ProtobufCMessage *message, enum wire_format format, const char *const *always,
                         struct region *r, struct span *out);

/* Read the numbers of a vector. They must be finite.
 *
 * vector  NULL: no numbers
 * path    place of the vector in the message, for the error
 * out     lives in the region
 */
err_t wire_vector_read(const Sluice__V1__Vector *vector, const char *path, err_code_t field_error, struct region *r,
                       struct floats *out);

#endif
