/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing how to decode a record, and verifying what all forms have in common. */
#include "ingest/wire/item_format.h"

#include "ingest/wire/framing.h"
#include "ingest/wire/mapped_document.h"
#include "ingest/wire/wire.h"

static err_t verify_key(struct span key, const char *whose)
{
  if (key.n < 1 || key.n > ITEM_KEY_MAX)
    FAIL(ERR_ITEM, "%s key has %zu bytes: an item key has 1 to %d", whose, key.n, ITEM_KEY_MAX);
  return ERR_OK;
}

/* Find the message in the value of a record of Sluice's own form. */
static err_t open_value(bool is_framed, const struct topic_record *record, struct span *value, enum wire_format *format)
{
  *value = record->value;
  if (is_framed)
    TRY(framing_strip(value));
  *format = wire_format_of(*value, record->content_type);
  return is_framed && *format == WIRE_PROTOBUF ? framing_strip_indexes(value) : ERR_OK;
}

static err_t decode_own(bool is_framed, const struct topic_record *record, struct region *r, struct item_change *out)
{
  enum wire_format format;
  struct span value;

  out->key = record->has_key ? record->key : (struct span){ 0 };
  TRY(verify_key(out->key, "the record's"));
  out->is_delete = !record->has_value; /* a tombstone */
  if (out->is_delete)
    return ERR_OK;
  if (record->value.n == 0)
    FAIL(ERR_ITEM, "the value is empty but not null: send a null value to delete the item");
  TRY(open_value(is_framed, record, &value, &format));
  TRY(wire_decode_item(value, format, r, out));
  if (out->n_parts == 0 && out->n_attributes == 0)
    FAIL(ERR_ITEM, "the item has no parts and no attributes: send a null value to delete it");
  return ERR_OK;
}

err_t item_format_find_schema(const struct item_format *f, const struct topic_record *record, bool may_ask,
                              uint32_t *id)
{
  bool needs_key = f->mapping.key.n_steps == 0 || !record->has_value;

  if (!f->is_mapped || !f->is_framed)
    return ERR_OK;
  if (record->has_key && needs_key)
    TRY(mapped_document_find_schema(&f->mapping, record->key, may_ask, id));
  return record->has_value ? mapped_document_find_schema(&f->mapping, record->value, may_ask, id) : ERR_OK;
}

err_t item_format_ask(const struct item_format *f, uint32_t id, bool may_ask)
{
  const struct avro_type *type;

  return avro_schemas_find(f->mapping.schemas, id, may_ask, &type);
}

err_t item_format_decode(const struct item_format *f, const struct topic_record *record, struct region *r,
                         struct item_change *out)
{
  *out = (struct item_change){
    .partition = record->partition,
    .offset = record->offset,
    .timestamp_ms = record->timestamp_ms,
  };
  if (!f->is_mapped)
    return decode_own(f->is_framed, record, r, out);
  TRY(mapped_item_decode(&f->mapping, f->is_framed, record, r, out));
  return verify_key(out->key, "the item's");
}
