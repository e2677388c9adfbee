/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the JSON of control records. */
#include "ingest/wire/model_record.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "ingest/json/json_parse.h"

enum { SHARE_DIGITS = 9 }; /* so people read 0.05, not the nearest binary fraction */

/* ---- Keys ---- */

/* Has the name only characters that a configured one may have? */
static bool is_name(struct span text)
{
  for (size_t i = 0; i < text.n; i++) {
    uint8_t c = text.p[i];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
      return false;
  }
  return text.n > 0;
}

static err_t read_key(struct span key, struct model_change *out)
{
  char canonical[SPACE_NAME_MAX + 1];
  struct space_name name;

  if (!space_name_parse(key, &name) || !is_name(name.space))
    FAIL(ERR_ITEM, "the key is %s: it must be a space, such as books, or a generation of it, such as books@2",
         log_quote(key));
  if (!space_name_print(&name, canonical))
    FAIL(ERR_ITEM, "the key %s has more than %d bytes", log_quote(key), SPACE_NAME_MAX);
  out->space = name.space;
  out->generation = name.generation;
  return ERR_OK;
}

/* ---- Members ---- */

/* Refuse members that are not among the names. */
static err_t verify_members(const char *what, json_t *object, const char *const *names, size_t n)
{
  const char *member;
  json_t *value;

  json_object_foreach(object, member, value)
  {
    bool is_known = false;
    for (size_t i = 0; i < n; i++)
      is_known |= strcmp(member, names[i]) == 0;
    if (!is_known)
      FAIL(ERR_ITEM, "%s has no member %s", what, log_quote(span_of_str(member)));
  }
  return ERR_OK;
}

static err_t copy_text(json_t *json, const char *name, struct region *region, struct span *out)
{
  const json_t *text = json_object_get(json, name);

  if (!json_is_string(text))
    FAIL(ERR_ITEM, "add.%s: expects a text", name);
  return region_copy(region, span_of(json_string_value(text), json_string_length(text)), out);
}

/* ---- derive ---- */

/* An earlier generation: so there are no circles. */
static err_t read_derive(json_t *json, struct model_change *out)
{
  if (!json)
    return ERR_OK;
  if (!json_is_integer(json) || json_integer_value(json) < 1 || json_integer_value(json) >= out->generation)
    FAIL(ERR_ITEM, "derive: expects the number of an earlier generation, whose parts this one uses");
  out->derives_from = (uint32_t)json_integer_value(json);
  return ERR_OK;
}

/* ---- add ---- */

static bool is_digest(struct span text)
{
  if (text.n != MODEL_DIGEST_CHARS)
    return false;
  for (size_t i = 0; i < text.n; i++) {
    if (!(text.p[i] >= '0' && text.p[i] <= '9') && !(text.p[i] >= 'a' && text.p[i] <= 'f'))
      return false;
  }
  return true;
}

static err_t read_path(json_t *add, struct region *region, struct model_change *out)
{
  TRY(copy_text(add, "path", region, &out->path));
  if (json_object_get(add, "bytes"))
    FAIL(ERR_ITEM, "add.bytes: belongs to a file in the topic, not to a path");
  if (out->path.n < 1 || out->path.n > MODEL_PATH_MAX || out->path.p[0] != '/' ||
      memchr(out->path.p, '\0', out->path.n))
    FAIL(ERR_ITEM, "add.path: expects an absolute path of at most %d bytes", MODEL_PATH_MAX);
  return ERR_OK;
}

/* The file is in the topic of files. */
static err_t read_topic(json_t *add, struct model_change *out)
{
  const json_t *bytes = json_object_get(add, "bytes");

  if (json_object_get(add, "path"))
    FAIL(ERR_ITEM, "add: expects either path or topic");
  if (!json_is_true(json_object_get(add, "topic")))
    FAIL(ERR_ITEM, "add.topic: expects true");
  if (!json_is_integer(bytes) || json_integer_value(bytes) < 1 ||
      (uint64_t)json_integer_value(bytes) > MODEL_FILE_BYTES_MAX)
    FAIL(ERR_ITEM, "add.bytes: expects the size of the file, which is at most %" PRIu64 " bytes", MODEL_FILE_BYTES_MAX);
  out->is_in_topic = true;
  out->n_bytes = (uint64_t)json_integer_value(bytes);
  return ERR_OK;
}

/* The share of the queries that are compared; none by default. */
static err_t read_shadow(json_t *add, struct model_change *out)
{
  const json_t *shadow = json_object_get(add, "shadow");

  out->shadow = json_number_value(shadow);
  if (shadow && (!json_is_number(shadow) || out->shadow < 0 || out->shadow > 1))
    FAIL(ERR_ITEM, "add.shadow: expects a share of the queries, from 0 to 1");
  return ERR_OK;
}

static err_t read_add(json_t *add, struct region *region, struct model_change *out)
{
  static const char *const members[] = {
    "path", "sha256", "topic", "bytes", "derive", "shadow",
  };

  out->kind = MODEL_ADD;
  if (!json_is_object(add))
    FAIL(ERR_ITEM, "add: expects an object with sha256, and with path or topic");
  if (out->generation == 1)
    FAIL(ERR_ITEM, "add: the model of generation 1 is the one of the configuration: add generation 2 or later");
  TRY(verify_members("add", add, members, sizeof members / sizeof *members));
  TRY(read_derive(json_object_get(add, "derive"), out));
  TRY(read_shadow(add, out));
  TRY(json_object_get(add, "topic") ? read_topic(add, out) : read_path(add, region, out));
  TRY(copy_text(add, "sha256", region, &out->digest));
  if (!is_digest(out->digest))
    FAIL(ERR_ITEM, "add.sha256: expects %d lower-case hex digits, as sha256sum prints them", MODEL_DIGEST_CHARS);
  return ERR_OK;
}

/* ---- switches ---- */

static err_t read_switch(json_t *json, size_t i, struct model_switch *out)
{
  static const char *const members[] = { "to", "at_ms" };
  const json_t *to = json_object_get(json, "to"), *at = json_object_get(json, "at_ms");

  if (!json_is_object(json))
    FAIL(ERR_ITEM, "switches[%zu]: expects an object with to and at_ms", i);
  TRY(verify_members("a switch", json, members, 2));
  if (!json_is_integer(to) || json_integer_value(to) < 1 || json_integer_value(to) > SPACE_GENERATION_MAX)
    FAIL(ERR_ITEM, "switches[%zu].to: expects the number of a generation", i);
  if (!json_is_integer(at) || json_integer_value(at) < 0)
    FAIL(ERR_ITEM, "switches[%zu].at_ms: expects milliseconds since 1970", i);
  *out = (struct model_switch){ (uint32_t)json_integer_value(to), json_integer_value(at) };
  return ERR_OK;
}

static err_t read_switches(json_t *list, struct region *region, struct model_change *out)
{
  struct model_switch *switches;
  size_t n = json_array_size(list);

  out->kind = MODEL_SWITCHES;
  if (!json_is_array(list) || n < 1 || n > MODEL_SWITCHES_MAX)
    FAIL(ERR_ITEM, "switches: expects a list of 1 to %d switches", MODEL_SWITCHES_MAX);
  TRY(region_array(region, n, sizeof *switches, &switches));
  for (size_t i = 0; i < n; i++) {
    TRY(read_switch(json_array_get(list, i), i, &switches[i]));
    if (i > 0 && switches[i].at_ms < switches[i - 1].at_ms)
      FAIL(ERR_ITEM, "switches[%zu].at_ms: is before that of the switch before it", i);
  }
  out->switches = switches;
  out->n_switches = n;
  return ERR_OK;
}

/* ---- Records ---- */

static err_t read_generation(json_t *json, struct region *region, struct model_change *out)
{
  static const char *const members[] = { "add", "retire", "derive", "time" };
  json_t *add = json_object_get(json, "add"), *retire = json_object_get(json, "retire");

  TRY(verify_members("the record of a generation", json, members, 4));
  if (!add == !retire)
    FAIL(ERR_ITEM, "the record of a generation has either add or retire");
  if (add && json_object_get(json, "derive"))
    FAIL(ERR_ITEM, "derive: is a member of add, except in the record of a generation that is retired");
  if (add)
    return read_add(add, region, out);
  if (!json_is_true(retire))
    FAIL(ERR_ITEM, "retire: expects true");
  out->kind = MODEL_RETIRE;
  return read_derive(json_object_get(json, "derive"), out);
}

static err_t read_space(json_t *json, struct region *region, struct model_change *out)
{
  static const char *const members[] = { "switches", "time" };

  TRY(verify_members("the record of a space", json, members, 2));
  return read_switches(json_object_get(json, "switches"), region, out);
}

err_t model_record_decode(struct span key, bool has_value, struct span value, struct region *region,
                          struct model_change *out)
{
  AUTO(json_decrefp) json_t *json = NULL;
  struct model_change change = { .kind = MODEL_FORGET };
  bool has_large;

  TRY(read_key(key, &change));
  if (has_value) {
    TRY(json_parse(value, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, region, &has_large, &json));
    if (!json_is_object(json))
      FAIL(ERR_ITEM, "the value of a control record is a JSON object");
    TRY(change.generation ? read_generation(json, region, &change) : read_space(json, region, &change));
  }
  *out = change;
  return ERR_OK;
}

/* ---- Writing ---- */

static json_t *text_json(struct span text)
{
  return json_stringn((const char *)text.p, text.n);
}

static json_t *switches_json(const struct model_change *change)
{
  json_t *list = json_array();

  for (size_t i = 0; i < change->n_switches; i++)
    json_array_append_new(list, json_pack("{s:I, s:I}", "to", (json_int_t)change->switches[i].to, "at_ms",
                                          (json_int_t)change->switches[i].at_ms));
  return list;
}

/* Add where a generation derives from, if it does. */
static json_t *put_derive(json_t *object, const struct model_change *change)
{
  if (change->derives_from)
    json_object_set_new(object, "derive", json_integer(change->derives_from));
  return object;
}

static json_t *add_json(const struct model_change *change)
{
  json_t *add = change->is_in_topic ? json_pack("{s:b, s:I}", "topic", 1, "bytes", (json_int_t)change->n_bytes)
                                    : json_pack("{s:o}", "path", text_json(change->path));

  json_object_set_new(add, "sha256", text_json(change->digest));
  if (change->shadow > 0)
    json_object_set_new(add, "shadow", json_real(change->shadow));
  return put_derive(add, change);
}

static json_t *change_json(const struct model_change *change)
{
  switch (change->kind) {
  case MODEL_ADD:
    return json_pack("{s:o}", "add", add_json(change));
  case MODEL_RETIRE:
    return put_derive(json_pack("{s:b}", "retire", 1), change);
  default:
    return json_pack("{s:o}", "switches", switches_json(change));
  }
}

err_t model_record_encode(const struct model_change *change, struct region *region, struct span *out)
{
  AUTO(json_decrefp) json_t *json = change_json(change);
  char *text = json ? json_dumps(json, JSON_REAL_PRECISION(SHARE_DIGITS)) : NULL;

  if (!text)
    FAIL(ERR_ITEM, "the path of a model must be UTF-8");
  err_code_t err = region_copy(region, span_of_str(text), out);
  free(text);
  return err;
}
