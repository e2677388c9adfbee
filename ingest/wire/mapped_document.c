/* SPDX-License-Identifier: Apache-2.0 */
/* Framing is taken off, and the form of the topic chosen. */
#include "ingest/wire/mapped_document.h"

#include "ingest/avro/avro_value.h"
#include "ingest/json/json_parse.h"
#include "ingest/protobuf/protobuf_value.h"
#include "ingest/wire/framing.h"

/* Protobuf goes by the numbers of fields: the id of the schema says nothing that is needed. */
static err_t read_message(const struct mapping *m, bool is_framed, struct span bytes, json_t **out)
{
  if (is_framed)
    TRY(framing_strip_indexes(&bytes));
  return protobuf_value_read(protobuf_source_type(m->messages), bytes, out);
}

err_t mapped_document_read(const struct mapping *m, bool is_framed, struct span bytes, struct region *r,
                           bool *has_large, json_t **out)
{
  const struct avro_type *type = NULL;
  uint32_t id = 0;

  if (is_framed)
    TRY(framing_take(&bytes, &id));
  if (!m->schemas && !m->messages)
    return json_parse(bytes, JSON_DECODE_ANY, r, has_large, out);
  *has_large = false;
  if (m->messages)
    return read_message(m, is_framed, bytes, out);
  TRY(avro_schemas_find(m->schemas, id, false, &type));
  return avro_value_read(type, bytes, out);
}

err_t mapped_document_find_schema(const struct mapping *m, struct span bytes, bool may_ask, uint32_t *id)
{
  const struct avro_type *type;

  if (!m->schemas || !framing_is_there(bytes))
    return ERR_OK;
  TRY(framing_take(&bytes, id));
  err_code_t err = avro_schemas_find(m->schemas, *id, may_ask, &type);
  return err_class(err) == ERR_CLASS_REJECT ? ERR_OK : err;
}
