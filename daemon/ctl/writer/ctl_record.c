/* SPDX-License-Identifier: Apache-2.0 */
/* Split a line into key and value by hand, and give the value to the decoder of items. Parsing the whole line into a
 * tree would parse every vector twice. */
#include "daemon/ctl/writer/ctl_record.h"

#include <jansson.h>

#include "base/log.h"
#include "daemon/ctl/text/ctl_json.h"
#include "ingest/json/base64.h"
#include "ingest/wire/wire.h"

struct scanner {
  struct span text;
  size_t at;
};

static bool is_space(uint8_t c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct scanner *s)
{
  while (s->at < s->text.n && is_space(s->text.p[s->at]))
    s->at++;
}

static bool take(struct scanner *s, char c)
{
  skip_space(s);
  if (s->at >= s->text.n || s->text.p[s->at] != (uint8_t)c)
    return false;
  s->at++;
  return true;
}

/* Skip a string, including both quotes. */
static bool skip_string(struct scanner *s)
{
  for (s->at++; s->at < s->text.n; s->at++) {
    if (s->text.p[s->at] == '\\')
      s->at++;
    else if (s->text.p[s->at] == '"') {
      s->at++;
      return true;
    }
  }
  return false;
}

/* Skip one value of any kind. Its decoder checks what is inside. */
static bool skip_value(struct scanner *s, struct span *out)
{
  size_t depth = 0;

  skip_space(s);
  size_t begin = s->at;
  while (s->at < s->text.n) {
    uint8_t c = s->text.p[s->at];
    if (c == '"') {
      if (!skip_string(s))
        return false;
    } else {
      if (depth == 0 && (c == ',' || c == '}' || c == ']' || is_space(c)))
        break;
      depth += c == '{' || c == '[';
      depth -= c == '}' || c == ']';
      s->at++;
    }
    if (depth == 0 && (c == '"' || c == '}' || c == ']'))
      break;
  }
  *out = span_of(s->text.p + begin, s->at - begin);
  return depth == 0 && out->n > 0;
}

/* The members of a line, as JSON text. */
struct members {
  struct span key;
  struct span value;
};

static err_t read_member(struct scanner *s, struct members *m)
{
  struct span name, value;

  if (!skip_value(s, &name) || name.p[0] != '"' || !take(s, ':') || !skip_value(s, &value))
    FAIL(ERR_WIRE, "not JSON near byte %zu", s->at + 1);
  if (span_equal(name, span_of_str("\"record\""))) /* sluicectl get writes it */
    return ERR_OK;
  bool is_key = span_equal(name, span_of_str("\"key\""));
  if (!is_key && !span_equal(name, span_of_str("\"value\"")))
    FAIL(ERR_WIRE, "unknown member %s: a line has \"key\" and \"value\"", log_quote(span_of(name.p + 1, name.n - 2)));
  struct span *slot = is_key ? &m->key : &m->value;
  if (slot->n)
    FAIL(ERR_WIRE, "%s is given twice", is_key ? "key" : "value");
  *slot = value;
  return ERR_OK;
}

static err_t read_members(struct span line, struct members *m)
{
  struct scanner s = { .text = line };

  if (!take(&s, '{'))
    FAIL(ERR_WIRE, "expects an object: {\"key\": ..., \"value\": ...}");
  if (!take(&s, '}')) {
    do
      TRY(read_member(&s, m));
    while (take(&s, ','));
    if (!take(&s, '}'))
      FAIL(ERR_WIRE, "not JSON near byte %zu", s.at + 1);
  }
  skip_space(&s);
  if (s.at < line.n)
    FAIL(ERR_WIRE, "there is more after the object, at byte %zu", s.at + 1);
  if (!m->key.n)
    FAIL(ERR_ITEM, "no \"key\"");
  if (!m->value.n)
    FAIL(ERR_ITEM, "no \"value\": an item, or null to delete");
  return ERR_OK;
}

static err_t read_base64(const json_t *text, struct region *r, struct span *out)
{
  uint8_t *bytes;
  size_t n;
  struct span coded = span_of(json_string_value(text), json_string_length(text));

  TRY(region_array(r, coded.n / 4 * 3 + 2, 1, &bytes));
  if (!base64_decode(coded, bytes, &n))
    FAIL(ERR_ITEM, "key: %s is not Base64", log_quote(coded));
  *out = span_of(bytes, n);
  return ERR_OK;
}

/* A key is a string, or {"base64": "..."} if it is not UTF-8. */
static err_t read_key(struct span json_text, struct region *r, struct span *out)
{
  json_error_t error;
  AUTO(ctl_json_close)
  json_t *json = json_loadb((const char *)json_text.p, json_text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

  if (!json)
    FAIL(ERR_WIRE, "key: %s", error.text);
  const json_t *coded = json_object_size(json) == 1 ? json_object_get(json, "base64") : NULL;
  if (json_is_string(coded))
    return read_base64(coded, r, out);
  if (!json_is_string(json))
    FAIL(ERR_ITEM, "key: expects a string, or {\"base64\": \"...\"}");
  return region_copy(r, span_of(json_string_value(json), json_string_length(json)), out);
}

err_t ctl_record_verify_key(struct span key)
{
  if (key.n < 1 || key.n > ITEM_KEY_MAX)
    FAIL(ERR_ITEM, "key: it has %zu bytes, but a key has 1 to %d", key.n, ITEM_KEY_MAX);
  return ERR_OK;
}

err_t ctl_record_make(struct span key, struct span json_value, struct region *r, struct ctl_record *out)
{
  struct item_change change = { 0 };
  struct ctl_record record = { .key = key };

  TRY(ctl_record_verify_key(key));
  TRY(wire_decode_item(json_value, WIRE_JSON, r, &change));
  if (change.n_parts == 0 && change.n_attributes == 0)
    FAIL(ERR_ITEM, "value: it has no parts and no attributes; to delete an item, use null");
  TRY(wire_encode_item(&change, WIRE_PROTOBUF, r, &record.value));
  *out = record;
  return ERR_OK;
}

err_t ctl_record_read(struct span line, struct region *r, struct ctl_record *out)
{
  struct members members = { 0 };
  struct span key;

  TRY(read_members(line, &members));
  TRY(read_key(members.key, r, &key));
  if (!span_equal(members.value, span_of_str("null")))
    return ctl_record_make(key, members.value, r, out);
  TRY(ctl_record_verify_key(key));
  *out = (struct ctl_record){ .key = key, .is_delete = true };
  return ERR_OK;
}
