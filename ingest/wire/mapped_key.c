/* SPDX-License-Identifier: Apache-2.0 */
/* Connectors write a row's primary key as a JSON object; most other producers write text. */
#include "ingest/wire/mapped_key.h"

#include "base/log.h"
#include "base/utf8.h"
#include "ingest/wire/framing.h"
#include "ingest/wire/mapped_document.h"
#include "ingest/wire/mapped_value.h"

json_t *mapped_key_payload(json_t *json)
{
  json_t *payload = json_object_get(json, "payload");

  return payload && json_object_size(json) == 2 && json_object_get(json, "schema") ? payload : json;
}

/* Find the member of an object that is the key. */
static err_t choose_member(const struct mapping *m, json_t *object, json_t **out)
{
  json_t *chosen = m->key.n_steps ? json_path_find(&m->key, object) : NULL;

  if (!chosen && json_object_size(object) != 1)
    FAIL(ERR_ITEM, "the record's key has %zu members%s%s: catalogue.mapping.key says which one is the item's key",
         json_object_size(object), m->key.n_steps ? ", but no " : "", m->key.n_steps ? m->key.text : "");
  *out = chosen ? chosen : json_object_iter_value(json_object_iter(object));
  return ERR_OK;
}

static err_t read_document(const struct mapping *m, bool is_framed, struct span key, struct region *r, struct span *out)
{
  const struct json_place at = { .kind = JSON_PLACE_FIELD, .name = "the record's key" };
  struct json_reader rd = { .region = r, .field_error = ERR_ITEM };
  AUTO(json_decrefp) json_t *json = NULL;

  err_code_t err = mapped_document_read(m, is_framed, key, r, &rd.has_large, &json);
  if (err == ERR_WIRE)
    FAIL(ERR_ITEM, "the record's key is %s: %s", log_quote(key), err_message());
  TRY(err);
  json_t *found = mapped_key_payload(json);
  if (json_is_object(found))
    TRY(choose_member(m, found, &found));
  return mapped_value_key(&rd, &at, found, out);
}

err_t mapped_key_read(const struct mapping *m, bool is_framed, struct span key, struct region *r, struct span *out)
{
  bool has_frame = is_framed && framing_is_there(key);

  if (m->schemas && has_frame)
    return read_document(m, true, key, r, out);
  if (has_frame && m->messages)
    FAIL(ERR_ITEM,
         "the record's key is framed, but a framed key of Protobuf cannot be read: write keys as plain text, or "
         "set catalogue.mapping.key to take them from the value (a tombstone still needs a plain key)");
  if (has_frame)
    TRY(framing_strip(&key));
  if (!m->schemas && !m->messages && key.n > 0 && (key.p[0] == '{' || key.p[0] == '"'))
    return read_document(m, false, key, r, out);
  if (key.n > 0 && (memchr(key.p, 0, key.n) || !utf8_is_valid(key)))
    FAIL(ERR_ITEM, "the record's key %s is neither text nor JSON: catalogue.mapping.key can take it from the value",
         log_quote(key));
  *out = key;
  return ERR_OK;
}
