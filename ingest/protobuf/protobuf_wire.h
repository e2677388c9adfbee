/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of Protobuf: tags and values are taken off the front of a span. No length is believed before the bytes are
 * there.
 *
 * All return ERR_WIRE with what is wrong, without the place; the span may be shorter then.
 * Thread: any. Blocks: no. Allocates: no.
 */
#ifndef INGEST_PROTOBUF_WIRE_H
#define INGEST_PROTOBUF_WIRE_H

#include "base/err.h"
#include "base/span.h"

enum protobuf_wire_type {
  PROTOBUF_WIRE_VARINT,
  PROTOBUF_WIRE_FIXED64,
  PROTOBUF_WIRE_BYTES,
  PROTOBUF_WIRE_GROUP,
  PROTOBUF_WIRE_GROUP_END,
  PROTOBUF_WIRE_FIXED32,
};

/* How deep groups that are skipped may be nested. */
enum { PROTOBUF_WIRE_DEPTH_MAX = 64 };

enum { PROTOBUF_NUMBER_MAX = (1 << 29) - 1 }; /* of a field */

struct protobuf_tag {
  uint32_t number;
  enum protobuf_wire_type type;
};

err_t protobuf_wire_take_varint(struct span *bytes, uint64_t *out);
err_t protobuf_wire_take_tag(struct span *bytes, struct protobuf_tag *out);
err_t protobuf_wire_take_fixed32(struct span *bytes, uint64_t *out);
err_t protobuf_wire_take_fixed64(struct span *bytes, uint64_t *out);

/* Take a length, and as many bytes. */
err_t protobuf_wire_take_bytes(struct span *bytes, struct span *out);

/* Skip the value that a tag announces; of a group, all up to its end. */
err_t protobuf_wire_skip(struct span *bytes, const struct protobuf_tag *tag);

#endif
