/* SPDX-License-Identifier: Apache-2.0 */
/* The records of the partials topic: encoding and decoding them, and decoding the answers in them.
 *
 * Thread: the one that owns the region. Blocks: no. Allocates: in the region.
 */
#ifndef INGEST_WIRE_PARTIAL_H
#define INGEST_WIRE_PARTIAL_H

#include "base/partial.h"
#include "base/region.h"

/* Encode a record. Its answer may be missing: then it is the head of a part, for wire_complete_partial(). */
err_t wire_encode_partial(const struct partial *partial, struct region *r, struct span *out);

/* Put an answer behind the head of a part. */
err_t wire_complete_partial(struct span head, struct span answer, struct region *r, struct span *out);

/* Decode a record. What `out` points to lives in the region.
 *
 * Returns ERR_OK; ERR_WIRE with the reason when it is not a usable record; ERR_MEMORY.
 */
err_t wire_decode_partial(struct span value, struct region *r, struct partial *out);

/* Decode a protobuf Answer, from a shard. What `out` points to lives in the region.
 *
 * Returns ERR_OK; ERR_WIRE with the reason; ERR_MEMORY.
 */
err_t wire_decode_answer(struct span value, struct region *r, struct answer *out);

#endif
