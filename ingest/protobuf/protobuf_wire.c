/* SPDX-License-Identifier: Apache-2.0 */
/* Taking values off bytes. */
#include "ingest/protobuf/protobuf_wire.h"

#include <inttypes.h>

enum { VARINT_BYTES_MAX = 10 };

static err_t take(struct span *bytes, size_t n, const uint8_t **out)
{
  if (bytes->n < n)
    FAIL(ERR_WIRE, "the bytes end in the middle of a value");
  *out = bytes->p;
  *bytes = span_of(bytes->p + n, bytes->n - n);
  return ERR_OK;
}

err_t protobuf_wire_take_varint(struct span *bytes, uint64_t *out)
{
  uint64_t bits = 0;

  for (size_t i = 0; i < VARINT_BYTES_MAX; i++) {
    if (i == bytes->n)
      FAIL(ERR_WIRE, "the bytes end in the middle of a number");
    bits |= (uint64_t)(bytes->p[i] & 0x7f) << 7 * i;
    if (bytes->p[i] < 0x80) {
      *bytes = span_of(bytes->p + i + 1, bytes->n - i - 1);
      *out = bits;
      return ERR_OK;
    }
  }
  FAIL(ERR_WIRE, "a number of more than %d bytes", VARINT_BYTES_MAX);
}

err_t protobuf_wire_take_tag(struct span *bytes, struct protobuf_tag *out)
{
  uint64_t bits = 0;

  TRY(protobuf_wire_take_varint(bytes, &bits));
  if (bits >> 3 == 0 || bits >> 3 > PROTOBUF_NUMBER_MAX)
    FAIL(ERR_WIRE, "a field of number %" PRIu64 ", which no message has", bits >> 3);
  if ((bits & 7) > PROTOBUF_WIRE_FIXED32)
    FAIL(ERR_WIRE, "a field of wire type %u, which does not exist", (unsigned)(bits & 7));
  *out = (struct protobuf_tag){ (uint32_t)(bits >> 3), (enum protobuf_wire_type)(bits & 7) };
  return ERR_OK;
}

err_t protobuf_wire_take_fixed32(struct span *bytes, uint64_t *out)
{
  const uint8_t *p = NULL;
  uint32_t bits;

  TRY(take(bytes, sizeof bits, &p));
  memcpy(&bits, p, sizeof bits); /* little-endian, like the machine */
  *out = bits;
  return ERR_OK;
}

err_t protobuf_wire_take_fixed64(struct span *bytes, uint64_t *out)
{
  const uint8_t *p = NULL;

  TRY(take(bytes, sizeof *out, &p));
  memcpy(out, p, sizeof *out);
  return ERR_OK;
}

err_t protobuf_wire_take_bytes(struct span *bytes, struct span *out)
{
  const uint8_t *p = NULL;
  uint64_t n = 0;

  TRY(protobuf_wire_take_varint(bytes, &n));
  if (n > bytes->n)
    FAIL(ERR_WIRE, "a length of %" PRIu64 ", but %zu bytes follow", n, bytes->n);
  TRY(take(bytes, (size_t)n, &p));
  *out = span_of(p, (size_t)n);
  return ERR_OK;
}

/* Skip a value that has no other ones in it. */
static err_t skip_plain(struct span *bytes, enum protobuf_wire_type type)
{
  struct span content;
  uint64_t bits;

  switch (type) {
  case PROTOBUF_WIRE_VARINT:
    return protobuf_wire_take_varint(bytes, &bits);
  case PROTOBUF_WIRE_FIXED64:
    return protobuf_wire_take_fixed64(bytes, &bits);
  case PROTOBUF_WIRE_BYTES:
    return protobuf_wire_take_bytes(bytes, &content);
  case PROTOBUF_WIRE_FIXED32:
    return protobuf_wire_take_fixed32(bytes, &bits);
  case PROTOBUF_WIRE_GROUP:
  case PROTOBUF_WIRE_GROUP_END:
    break;
  }
  FAIL(ERR_WIRE, "a group ends that has not begun");
}

err_t protobuf_wire_skip(struct span *bytes, const struct protobuf_tag *tag)
{
  uint32_t open[PROTOBUF_WIRE_DEPTH_MAX]; /* numbers of the groups that have not ended */
  struct protobuf_tag at = *tag;
  size_t n = 0;

  for (;;) {
    if (at.type == PROTOBUF_WIRE_GROUP) {
      if (n == PROTOBUF_WIRE_DEPTH_MAX)
        FAIL(ERR_WIRE, "groups are nested more than %d deep", PROTOBUF_WIRE_DEPTH_MAX);
      open[n++] = at.number;
    } else if (at.type == PROTOBUF_WIRE_GROUP_END && n > 0 && open[n - 1] == at.number) {
      n--;
    } else {
      TRY(skip_plain(bytes, at.type));
    }
    if (n == 0)
      return ERR_OK;
    TRY(protobuf_wire_take_tag(bytes, &at));
  }
}
