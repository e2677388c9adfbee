/* SPDX-License-Identifier: Apache-2.0 */
/* Values as JSON, whether or not the daemon could use them. */
#include "ingest/wire/wire_message.h"

/* Items that can be decoded have their vectors as numbers, however they were sent. */
static err_t show_item(struct span value, enum wire_format format, struct region *r, struct span *out)
{
  struct item_change item = { 0 };

  TRY(wire_decode_item(value, format, r, &item));
  return wire_encode_item(&item, WIRE_JSON, r, out);
}

static err_t show_message(struct span value, enum wire_format format, enum wire_kind kind, struct region *r,
                          struct span *out)
{
  static const ProtobufCMessageDescriptor *const types[] = {
    [WIRE_ITEM] = &sluice__v1__item__descriptor,
    [WIRE_QUERY] = &sluice__v1__query__descriptor,
    [WIRE_SEEN] = &sluice__v1__seen__descriptor,
    [WIRE_ANSWER] = &sluice__v1__answer__descriptor,
  };
  struct wire_limit limit = wire_limit_begin(r, value.n);
  ProtobufCMessage *message;

  err_code_t err = kind == WIRE_ANSWER ? wire_message_read_ours(value, format, types[kind], r, &message)
                                       : wire_message_read(value, format, types[kind], ERR_WIRE, r, &message);
  TRY(wire_limit_end(&limit, err, ERR_WIRE));
  return wire_message_write(message, WIRE_JSON, NULL, r, out);
}

err_t wire_show(struct span value, enum wire_format format, enum wire_kind kind, struct region *r, struct span *out)
{
  if (kind == WIRE_ITEM && show_item(value, format, r, out) == ERR_OK)
    return ERR_OK;
  return show_message(value, format, kind, r, out);
}
