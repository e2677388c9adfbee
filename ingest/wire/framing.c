/* SPDX-License-Identifier: Apache-2.0 */
/* Taking framing off. */
#include "ingest/wire/framing.h"

#include "ingest/protobuf/protobuf_wire.h"

enum { FRAME_BYTES = 5, INDEXES_MAX = 32 };

bool framing_is_there(struct span value)
{
  return value.n >= FRAME_BYTES && value.p[0] == 0;
}

static struct span skip(struct span bytes, size_t n)
{
  return span_of(bytes.p + n, bytes.n - n);
}

err_t framing_take(struct span *value, uint32_t *id)
{
  if (value->n > 0 && value->p[0] != 0)
    FAIL(ERR_WIRE, "the value is not framed as catalogue.framing says: its first byte is 0x%02x, not 0", value->p[0]);
  if (!framing_is_there(*value))
    FAIL(ERR_WIRE, "the value is not framed as catalogue.framing says: it has %zu bytes, and the framing alone has %d",
         value->n, FRAME_BYTES);
  *id = (uint32_t)value->p[1] << 24 | (uint32_t)value->p[2] << 16 | (uint32_t)value->p[3] << 8 | value->p[4];
  *value = skip(*value, FRAME_BYTES);
  return ERR_OK;
}

err_t framing_strip(struct span *value)
{
  uint32_t id;

  return framing_take(value, &id);
}

err_t framing_strip_indexes(struct span *value)
{
  struct span rest = *value;
  uint64_t zigzag, index;

  bool is_list = protobuf_wire_take_varint(&rest, &zigzag) == ERR_OK && zigzag % 2 == 0 && zigzag / 2 <= INDEXES_MAX;
  for (uint64_t i = 0; is_list && i < zigzag / 2; i++)
    is_list = protobuf_wire_take_varint(&rest, &index) == ERR_OK;
  if (!is_list)
    FAIL(ERR_WIRE, "no list of message indexes follows the schema's id, as in framed protobuf");
  *value = rest;
  return ERR_OK;
}
