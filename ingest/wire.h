/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format: bytes of Kafka values to and from the shared nouns (proto/sluice.proto, docs/protocol.md).
 *
 * Everything decoded is allocated in the caller's region and borrows nothing from the value. Every size is checked
 * before it is used; vectors come out as finite f32, whatever they were on the wire.
 *
 * Thread: the one that owns the region. Blocks: no. Allocates: in the region.
 */
#ifndef INGEST_WIRE_H
#define INGEST_WIRE_H

#include "base/err.h"
#include "base/query.h"
#include "base/region.h"

enum wire_format { WIRE_PROTOBUF, WIRE_JSON };

/* content_type  value of the header of that name, or empty: then the first byte decides
 */
enum wire_format wire_format_of(struct span value, struct span content_type);

/* "application/x-protobuf" or "application/json". */
const char *wire_content_type(enum wire_format format);

/* Decode the value of a catalogue record into out->parts and out->n_parts; the other fields are left alone.
 *
 * Returns ERR_OK; ERR_WIRE when it is not a message of this type; ERR_ITEM when a field is wrong (named in the
 * message) or the message takes more memory than its size allows. On error the region is as it was.
 */
err_t wire_decode_item(struct span value, enum wire_format format, struct region *r, struct item_change *out);

/* Encode the parts of a change; vectors as little-endian f32. */
err_t wire_encode_item(const struct item_change *change, enum wire_format format, struct region *r, struct span *out);

/* Decode a query.
 *
 * Returns ERR_OK; ERR_WIRE when it is not a message of this type (nobody can be answered: `out` is untouched);
 * ERR_QUERY when a field is wrong, unknown or too long (named in the message) or the message takes more memory than its
 * size allows: `out` then has id, space and reply_topic where they can be used, for the error answer.
 */
err_t wire_decode_query(struct span value, enum wire_format format, struct region *r, struct query *out);

/* Encode an answer; with answer->error set, the error and what identifies the query. */
err_t wire_encode_answer(const struct answer *answer, enum wire_format format, struct region *r, struct span *out);

#endif
