/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format: decode Kafka values to items and queries, and encode items and answers (proto/sluice.proto,
 * docs/protocol.md).
 *
 * Decoded data lives in the caller's region and borrows nothing from the value. Every size is checked before it is
 * used. Vectors of all types become finite f32 numbers.
 *
 * Thread: the one that owns the region. Blocks: no. Allocates: in the region.
 */
#ifndef INGEST_WIRE_H
#define INGEST_WIRE_H

#include "base/err.h"
#include "base/query.h"
#include "base/region.h"
#include "base/seen_change.h"

enum wire_format { WIRE_PROTOBUF, WIRE_JSON };

/* Find the format of a value.
 *
 * content_type  value of the header `content-type`; if it is empty or unknown, the first byte of the value decides
 */
enum wire_format wire_format_of(struct span value, struct span content_type);

/* Return the content type of a format: "application/x-protobuf" or "application/json". */
const char *wire_content_type(enum wire_format format);

/* Decode the value of a catalogue record into the parts and attributes of `out`, and their numbers. Other fields of
 * `out` are not changed. Attributes have correct names and sizes; their types are not known here.
 *
 * Returns ERR_OK; ERR_WIRE when the value is not a message of this type; ERR_TOO_LARGE when it has too many bytes to be
 * read; ERR_ITEM when a field is wrong, which the error names, or when decoding takes too much memory for the size of
 * the value. On error the region is unchanged.
 */
err_t wire_decode_item(struct span value, enum wire_format format, struct region *r, struct item_change *out);

/* Encode the parts and attributes of a change. In protobuf, vectors are little-endian f32. */
err_t wire_encode_item(const struct item_change *change, enum wire_format format, struct region *r, struct span *out);

/* Decode the value of a record of the seen topic into the items and the time of `out`. A value without a time leaves
 * the time unchanged. Errors as wire_decode_item(). */
err_t wire_decode_seen(struct span value, enum wire_format format, struct region *r, struct seen_change *out);

/* Decode a query.
 *
 * Returns ERR_OK; ERR_WIRE when the value is not a message of this type, and ERR_TOO_LARGE when it has too many bytes
 * to be read: `out` is unchanged, and nobody can be answered; ERR_QUERY when a field is wrong, unknown or too long,
 * which the error names, or when decoding takes too much memory for the size of the value. `out` then has the usable
 * ones of id, space and reply_topic, for the error answer.
 */
err_t wire_decode_query(struct span value, enum wire_format format, struct region *r, struct query *out);

/* Show a value to people: as JSON in the form that is accepted, with a zero after it. The value need not be usable; it
 * only has to be a message.
 *
 * Returns ERR_OK; ERR_WIRE when it is not a message of this kind, or when JSON cannot express it; ERR_MEMORY.
 */
enum wire_kind { WIRE_ITEM, WIRE_QUERY, WIRE_SEEN, WIRE_ANSWER };
err_t wire_show(struct span value, enum wire_format format, enum wire_kind kind, struct region *r, struct span *out);

/* Encode an answer. If answer->error is set, only the error, id and space are encoded. */
err_t wire_encode_answer(const struct answer *answer, enum wire_format format, struct region *r, struct span *out);

#endif
