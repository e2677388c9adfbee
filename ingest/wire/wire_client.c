/* SPDX-License-Identifier: Apache-2.0 */
/* Both directions as protobuf: it takes less time than JSON. */
#include "ingest/wire/wire_client.h"

#include "ingest/wire/wire_message.h"

static err_t translate(struct span json, struct region *r, struct span *out)
{
  ProtobufCMessage *message = NULL;

  TRY(wire_message_read(json, WIRE_JSON, &sluice__v1__query__descriptor, ERR_QUERY, r, &message));
  return wire_message_write(message, WIRE_PROTOBUF, NULL, r, out);
}

err_t wire_translate_query(struct span json, struct region *r, struct span *out)
{
  struct wire_limit limit = wire_limit_begin(r, json.n);

  err_code_t err = translate(json, r, out);
  return wire_limit_end(&limit, err, ERR_QUERY);
}

static err_t decode(struct span value, struct region *r, struct wire_reply *out)
{
  ProtobufCMessage *message = NULL;

  TRY(wire_message_read_ours(value, WIRE_PROTOBUF, &sluice__v1__answer__descriptor, r, &message));
  const Sluice__V1__Answer *answer = (const Sluice__V1__Answer *)message;
  *out = (struct wire_reply){
    .id = span_of_str(answer->id),
    .error = answer->error ? (enum answer_error)answer->error->code : ANSWER_OK,
    .message = answer->error ? answer->error->message : "",
    .queued_us = answer->times ? answer->times->queued_us : 0,
    .searched_us = answer->times ? answer->times->searched_us : 0,
  };
  return ERR_OK;
}

err_t wire_decode_reply(struct span value, struct region *r, struct wire_reply *out)
{
  struct wire_limit limit = wire_limit_begin(r, value.n);

  err_code_t err = decode(value, r, out);
  return wire_limit_end(&limit, err, ERR_WIRE);
}

const char *wire_error_name(enum answer_error error)
{
  const ProtobufCEnumValue *value =
      protobuf_c_enum_descriptor_get_value(&sluice__v1__error__code__descriptor, (int)error);

  return value ? value->name : "UNKNOWN";
}
