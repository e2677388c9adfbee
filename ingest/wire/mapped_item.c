/* SPDX-License-Identifier: Apache-2.0 */
/* From a record to a row, through framing, schema and envelope; then from the row to an item. */
#include "ingest/wire/mapped_item.h"

#include "base/log.h"
#include "ingest/wire/mapped_document.h"
#include "ingest/wire/mapped_key.h"
#include "ingest/wire/mapped_value.h"
#include "ingest/wire/wire_message.h"

/* What decoding one record needs. */
struct decoder {
  const struct mapping *m;
  bool is_framed;
  const struct topic_record *record;
  struct json_reader reader;
  json_t *row;    /* NULL: a delete that does not have it */
  bool is_update; /* of a row that was there: a missing field is unchanged */
};

static struct json_place place_of(const char *text)
{
  return (struct json_place){ .kind = JSON_PLACE_FIELD, .name = text };
}

static err_t read_op(struct decoder *d, json_t *envelope, const char **out)
{
  const json_t *op = json_object_get(envelope, "op");
  struct json_place at = place_of("op");

  if (!op)
    FAIL(ERR_ITEM, "op: expected Debezium's c, r, u or d, but it is not there: is there an envelope?");
  if (!json_is_string(op) || json_scalar_is_large(&d->reader, op))
    return json_scalar_fail(&d->reader, &at, "Debezium's c, r, u or d", op);
  *out = json_string_value(op);
  return ERR_OK;
}

/* Take a row out of Debezium's envelope. */
static err_t open_envelope(struct decoder *d, json_t *envelope, bool *is_delete)
{
  const char *op = "";

  TRY(read_op(d, envelope, &op));
  bool is_put = strcmp(op, "c") == 0 || strcmp(op, "r") == 0 || strcmp(op, "u") == 0;
  *is_delete = strcmp(op, "d") == 0;
  d->is_update = strcmp(op, "u") == 0 && !d->m->messages; /* in Protobuf, null is missing, too */
  if (!is_put && !*is_delete)
    FAIL(ERR_ITEM, "op: expected Debezium's c, r, u or d, not %s", log_quote(span_of_str(op)));
  struct json_place at = place_of(is_put ? "after" : "before");
  d->row = json_object_get(envelope, at.name);
  if (is_put && !d->row)
    FAIL(ERR_ITEM, "after: it is not there");
  if (is_put && !json_is_object(d->row))
    return json_scalar_fail(&d->reader, &at, "an object", d->row);
  return ERR_OK;
}

static err_t open_row(struct decoder *d, json_t *json, bool *is_delete)
{
  json_t *payload = d->m->messages ? json : mapped_key_payload(json); /* names in a message mean nothing to us */

  *is_delete = false;
  if (!json_is_object(payload))
    FAIL(ERR_WIRE, "%s, but %s where an object is expected", d->m->schemas ? "Avro" : "JSON",
         json_scalar_kind(payload));
  if (d->m->is_debezium)
    return open_envelope(d, payload, is_delete);
  d->row = payload;
  return ERR_OK;
}

/* The key is in the row if the mapping says so. A delete may have it in the record's key alone. */
static err_t read_key(struct decoder *d, bool is_delete, struct span *out)
{
  const struct json_path *path = &d->m->key;
  json_t *key = path->n_steps ? json_path_find(path, d->row) : NULL;
  struct json_place at = place_of(path->text);

  if (key && !json_is_null(key))
    return mapped_value_key(&d->reader, &at, key, out);
  if (path->n_steps && !is_delete)
    FAIL(ERR_ITEM, "%s: the item's key is %s", path->text, key ? "null" : "not there");
  if (!d->record->has_key)
    FAIL(ERR_ITEM, "the record has no key: catalogue.mapping.key can take the item's key from the value");
  return mapped_key_read(d->m, d->is_framed, d->record->key, d->reader.region, out);
}

static err_t read_flag(struct decoder *d, bool *out)
{
  const struct json_path *path = &d->m->deleted;
  struct json_place at = place_of(path->text);

  *out = false;
  return path->n_steps ? mapped_value_flag(&d->reader, &at, json_path_find(path, d->row), out) : ERR_OK;
}

/* How many of the mapped fields the row has, and in which way. */
struct tally {
  size_t n_there; /* also null */
  size_t n_kept;
};

static err_t read_part(struct decoder *d, const struct mapping_field *field, const json_t *json,
                       struct item_change *out)
{
  struct part *part = &out->parts[out->n_parts++];
  struct json_place at = place_of(field->path.text);

  TRY(region_copy(d->reader.region, span_of_str(field->name), &part->space));
  if (field->kind == MAPPING_VECTOR)
    return mapped_value_vector(&d->reader, &at, json, &part->vector);
  return mapped_value_codes(&d->reader, &at, json, &part->codes);
}

static err_t read_attribute(struct decoder *d, const struct mapping_field *field, const json_t *json,
                            struct item_change *out)
{
  struct attribute_value *attribute = &out->attributes[out->n_attributes++];
  struct json_place at = place_of(field->path.text);

  *attribute = (struct attribute_value){ .value.kind = VALUE_NULL };
  TRY(region_copy(d->reader.region, span_of_str(field->name), &attribute->name));
  if (!json)
    return ERR_OK;
  return mapped_value_attribute(&d->reader, &at, field->type, json, &attribute->value);
}

/* Protobuf cannot tell a field that is empty from one that nobody has set. Where an empty value means nothing, there is
 * none: an empty vector, empty text that is no keyword, a time of 0. */
static bool is_unset(const struct decoder *d, const struct mapping_field *field, const json_t *json)
{
  bool is_keyword = field->type == ATTRIBUTE_KEYWORD, is_time = field->type == ATTRIBUTE_TIME;
  bool is_list = json_is_array(json) && json_array_size(json) == 0;
  bool is_text = json_is_string(json) && json_string_length(json) == 0;

  if (!d->m->messages)
    return false;
  if (field->kind != MAPPING_ATTRIBUTE)
    return is_list || is_text;
  return (is_text && !is_keyword) || (is_time && json_is_integer(json) && json_integer_value(json) == 0);
}

static err_t read_field(struct decoder *d, const struct mapping_field *field, struct tally *tally,
                        struct item_change *out)
{
  const json_t *json = json_path_find(&field->path, d->row);
  bool is_absent = !json || json_is_null(json) || is_unset(d, field, json);
  bool is_kept = json ? mapped_value_is_unavailable(json) : d->is_update;

  tally->n_there += json != NULL;
  tally->n_kept += is_kept;
  if (is_kept)
    return ERR_OK;
  if (field->kind == MAPPING_ATTRIBUTE)
    return read_attribute(d, field, is_absent ? NULL : json, out); /* what is absent is removed */
  return is_absent ? ERR_OK : read_part(d, field, json, out);
}

static bool has_value(const struct item_change *change)
{
  for (size_t i = 0; i < change->n_attributes; i++) {
    if (change->attributes[i].value.kind != VALUE_NULL)
      return true;
  }
  return change->n_parts > 0;
}

static err_t read_fields(struct decoder *d, struct item_change *out)
{
  const struct mapping *m = d->m;
  struct tally tally = { 0 };

  TRY(region_array(d->reader.region, m->n_fields, sizeof *out->parts, &out->parts));
  TRY(region_array(d->reader.region, m->n_fields, sizeof *out->attributes, &out->attributes));
  for (size_t i = 0; i < m->n_fields; i++)
    TRY(read_field(d, &m->fields[i], &tally, out));
  if (tally.n_there + tally.n_kept == 0)
    FAIL(ERR_ITEM, "the record has none of the mapped fields, such as %s", m->fields[0].path.text);
  out->is_whole = tally.n_kept == 0;
  out->is_delete = out->is_whole && !has_value(out);
  if (out->is_delete)
    out->n_attributes = 0; /* they are all null */
  return ERR_OK;
}

static err_t read_row(struct decoder *d, bool is_delete, struct item_change *out)
{
  TRY(read_key(d, is_delete, &out->key));
  if (!is_delete)
    TRY(read_flag(d, &is_delete));
  out->is_delete = is_delete;
  return is_delete ? ERR_OK : read_fields(d, out);
}

static err_t decode(struct decoder *d, struct item_change *out)
{
  AUTO(json_decrefp) json_t *json = NULL;
  bool is_delete = true;

  if (!d->record->has_value)
    return read_row(d, true, out);
  TRY(mapped_document_read(d->m, d->is_framed, d->record->value, d->reader.region, &d->reader.has_large, &json));
  TRY(open_row(d, json, &is_delete));
  return read_row(d, is_delete, out);
}

err_t mapped_item_decode(const struct mapping *m, bool is_framed, const struct topic_record *record, struct region *r,
                         struct item_change *out)
{
  struct decoder d = {
    .m = m,
    .is_framed = is_framed,
    .record = record,
    .reader = { .region = r, .field_error = ERR_ITEM },
  };

  TRY(wire_verify_value(record->value));
  struct wire_limit limit = wire_limit_begin(r, record->value.n);
  return wire_limit_end(&limit, decode(&d, out), ERR_ITEM);
}
