/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through rows and tries each way to read a value, with the functions that items are read with. */
#include "ingest/wire/mapping_census.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "ingest/wire/mapped_document.h"
#include "ingest/wire/mapped_key.h"
#include "ingest/wire/mapped_value.h"

/* From 2001 to 2100. */
#define TIME_LEAST_MS INT64_C(978307200000)
#define TIME_MOST_MS  INT64_C(4133980800000)

struct walk {
  struct mapping_census *census;
  struct json_reader reader;
  struct span key; /* of the record; p is NULL: none */
  bool is_message; /* Protobuf cannot tell a field that nobody has set from one that is empty or 0 */
};

/* ---- Paths ---- */

struct path {
  char text[JSON_PATH_TEXT_MAX + 1];
  size_t n, at_name, n_steps;
};

/* Does a name of a path need the form of a pointer? */
static bool needs_pointer(const char *name)
{
  return strpbrk(name, "./~") != NULL;
}

/* Append a step of a pointer. */
static void append_step(struct path *path, const char *name)
{
  char *out = path->text + path->n;

  *out++ = '/';
  path->at_name = (size_t)(out - path->text);
  for (; *name; name++) {
    bool is_escaped = *name == '~' || *name == '/';
    if (is_escaped)
      *out++ = '~';
    *out++ = is_escaped ? (*name == '~' ? '0' : '1') : *name;
  }
  *out = '\0';
  path->n = (size_t)(out - path->text);
}

/* Write a path of plain steps as a pointer. */
static void make_pointer(struct path *path)
{
  if (path->n == 0 || path->text[0] == '/')
    return;
  memmove(path->text + 1, path->text, path->n + 1);
  path->text[0] = '/';
  for (char *at = path->text; (at = strchr(at, '.'));)
    *at = '/';
  path->n++;
}

/* Make the path of a member. Returns false if it cannot be named. */
static bool extend(const struct path *of, const char *name, struct path *out)
{
  *out = *of;
  if (!*name || ++out->n_steps > JSON_PATH_STEPS_MAX || out->n + 2 * strlen(name) + 4 > JSON_PATH_TEXT_MAX)
    return false;
  if (needs_pointer(name) || out->text[0] == '/') {
    make_pointer(out);
    append_step(out, name);
    return true;
  }
  out->at_name = out->n + (out->n > 0);
  out->n += (size_t)sprintf(out->text + out->n, "%s%s", out->n ? "." : "", name);
  return true;
}

/* ---- Fields ---- */

/* Rows have their members in the same order, mostly. Returns NULL if there is no such field. */
static struct census_field *look_up(struct mapping_census *c, const struct path *path, uint64_t hash)
{
  for (size_t i = 0; i < c->n_fields; i++) {
    struct census_field *field = &c->fields[(c->hint + i) % c->n_fields];
    if (field->hash == hash && strcmp(field->path, path->text) == 0) {
      c->hint = (size_t)(field - c->fields) + 1;
      return field;
    }
  }
  return NULL;
}

/* out: NULL if there are too many fields */
static err_t find_field(struct mapping_census *c, const struct path *path, struct census_field **out)
{
  uint64_t hash = XXH3_64bits(path->text, path->n);
  struct census_field *field;

  *out = look_up(c, path, hash);
  if (*out)
    return ERR_OK;
  if (c->n_fields == CENSUS_FIELDS_MAX) {
    c->n_more++;
    return ERR_OK;
  }
  TRY(mem_grow(c->n_fields + 1, sizeof *c->fields, &c->capacity, &c->fields));
  field = &c->fields[c->n_fields];
  *field = (struct census_field){ .hash = hash };
  TRY(mem_copy_str(path->text, &field->path));
  field->name = field->path + path->at_name;
  c->n_fields++;
  *out = field;
  return ERR_OK;
}

static void show_example(const json_t *json, char out[CENSUS_EXAMPLE_BYTES])
{
  char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
  int n = snprintf(out, CENSUS_EXAMPLE_BYTES, "%s", text ? text : "");

  for (char *at = out; (at = strchr(at, 0x7f));) /* the one control character that is left */
    *at = '?';
  if (n >= CENSUS_EXAMPLE_BYTES)
    memcpy(out + CENSUS_EXAMPLE_BYTES - 4, "...", 4);
  free(text);
}

/* Keep the length that all have. */
static void note_length(size_t n_before, size_t length, size_t *kept)
{
  *kept = n_before == 0 || *kept == length ? length : 0;
}

static bool fits(struct walk *w, enum attribute_type type, const json_t *json, struct value *out)
{
  const struct json_place at = { .kind = JSON_PLACE_FIELD, .name = "" };

  return mapped_value_attribute(&w->reader, &at, type, json, out) == ERR_OK;
}

static bool is_time(struct walk *w, const json_t *json)
{
  struct value value;

  return fits(w, ATTRIBUTE_TIME, json, &value) &&
         (json_is_string(json) || (value.integer >= TIME_LEAST_MS && value.integer < TIME_MOST_MS));
}

static bool is_decimal(struct walk *w, const json_t *json)
{
  struct value value;

  return json_is_string(json) && fits(w, ATTRIBUTE_NUMBER, json, &value);
}

static bool is_bit(const json_t *json)
{
  return json_is_integer(json) && (json_integer_value(json) == 0 || json_integer_value(json) == 1);
}

/* A number is a flag if it is a bit or a time: others may count something. */
static bool is_flag(struct walk *w, const json_t *json)
{
  const struct json_place at = { .kind = JSON_PLACE_FIELD, .name = "" };
  bool is_deleted;

  return (!json_is_number(json) || is_bit(json) || is_time(w, json)) &&
         mapped_value_flag(&w->reader, &at, json, &is_deleted) == ERR_OK;
}

static void count_lists(struct walk *w, struct census_field *field, const json_t *json)
{
  const struct json_place at = { .kind = JSON_PLACE_FIELD, .name = "" };
  struct floats vector;
  struct span codes;

  if (mapped_value_vector(&w->reader, &at, json, &vector) == ERR_OK)
    note_length(field->n_vectors++, vector.n, &field->vector_length);
  if (mapped_value_codes(&w->reader, &at, json, &codes) == ERR_OK)
    note_length(field->n_codes++, codes.n, &field->codes_length);
}

static bool can_be_key(struct span key)
{
  return key.n >= 1 && key.n <= ITEM_KEY_MAX;
}

static void count_scalars(struct walk *w, struct census_field *field, const json_t *json)
{
  const struct json_place at = { .kind = JSON_PLACE_FIELD, .name = "" };
  bool has_decimal = is_decimal(w, json), is_key;
  struct value value;
  struct span key;

  field->n_booleans += json_is_boolean(json);
  field->n_integers += json_is_integer(json);
  field->n_fractions += json_is_real(json);
  field->n_texts += json_is_string(json);
  field->n_lists += json_is_array(json) || (json_is_string(json) && *json_string_value(json) == '[');
  field->n_times += is_time(w, json);
  field->n_bits += is_bit(json);
  field->n_decimals += has_decimal;
  field->n_points += has_decimal && strchr(json_string_value(json), '.');
  field->n_keyword += fits(w, ATTRIBUTE_KEYWORD, json, &value);
  field->n_keywords += fits(w, ATTRIBUTE_KEYWORDS, json, &value);
  field->n_flags += is_flag(w, json);
  is_key = mapped_value_key(&w->reader, &at, json, &key) == ERR_OK && can_be_key(key);
  field->n_keys += is_key;
  field->n_record_keys += is_key && w->key.p && span_equal(key, w->key);
}

/* Does the value say nothing of what the field is? */
static bool is_absent(const struct walk *w, const json_t *json)
{
  bool is_empty = (json_is_array(json) && json_array_size(json) == 0) ||
                  (json_is_string(json) && json_string_length(json) == 0) ||
                  (json_is_integer(json) && json_integer_value(json) == 0);

  return json_is_null(json) || mapped_value_is_unavailable(json) || (w->is_message && is_empty);
}

static err_t count_value(struct walk *w, const struct path *path, const json_t *json)
{
  struct census_field *field;

  TRY(find_field(w->census, path, &field));
  if (!field || is_absent(w, json))
    return ERR_OK;
  count_lists(w, field, json);
  count_scalars(w, field, json);
  if (field->n++ == 0)
    show_example(json, field->example);
  return ERR_OK;
}

static err_t walk_object(struct walk *w, const struct path *of, json_t *object);

static err_t walk_member(struct walk *w, const struct path *path, json_t *member)
{
  struct census_field *field;

  if (!json_is_object(member))
    return count_value(w, path, member);
  TRY(find_field(w->census, path, &field));
  if (field)
    field->n_objects++;
  return walk_object(w, path, member);
}

static err_t walk_object(struct walk *w, const struct path *of, json_t *object)
{
  const char *name;
  json_t *member;

  json_object_foreach(object, name, member)
  {
    struct path path;
    if (!extend(of, name, &path))
      w->census->n_more++;
    else
      TRY(walk_member(w, &path, member));
  }
  return ERR_OK;
}

/* ---- Records ---- */

/* Take a row out of Debezium's envelope, if it is in one. NULL: it says that the row is deleted. */
static json_t *open_envelope(struct mapping_census *c, json_t *payload)
{
  const char *op = json_string_value(json_object_get(payload, "op"));
  json_t *after = json_object_get(payload, "after");
  bool is_delete = op && strcmp(op, "d") == 0 && json_object_get(payload, "before");
  bool is_put = op && strlen(op) == 1 && strchr("cru", *op) && json_is_object(after);

  c->n_bare += !is_delete && !is_put;
  if (!is_delete && !is_put)
    return payload;
  c->n_envelopes++;
  return is_put ? after : NULL;
}

static err_t note_unread(struct mapping_census *c, err_code_t err)
{
  if (err != ERR_WIRE && err != ERR_TOO_LARGE)
    return err;
  if (c->n_unread++ == 0)
    err_keep(err, &c->first_unread);
  return ERR_OK;
}

static err_t read_payload(const struct mapping *m, bool is_framed, const struct topic_record *record,
                          struct json_reader *reader, json_t **json, json_t **payload)
{
  TRY(mapped_document_read(m, is_framed, record->value, reader->region, &reader->has_large, json));
  *payload = m->messages ? *json : mapped_key_payload(*json);
  if (!json_is_object(*payload))
    FAIL(ERR_WIRE, "%s where an object is expected", json_scalar_kind(*payload));
  return ERR_OK;
}

err_t mapping_census_add(struct mapping_census *c, const struct mapping *m, bool is_framed,
                         const struct topic_record *record, struct region *scratch)
{
  AUTO(json_decrefp) json_t *json = NULL;
  struct mapping keyless = *m; /* of a key with several members none is taken */
  struct walk w = { .census = c, .reader = { .region = scratch, .field_error = ERR_ITEM }, .is_message = m->messages };
  const struct path root = { 0 };
  json_t *payload = NULL;

  keyless.key = (struct json_path){ 0 };
  c->n_records++;
  c->n_deletes += !record->has_value;
  if (!record->has_value)
    return ERR_OK;
  err_code_t err = read_payload(&keyless, is_framed, record, &w.reader, &json, &payload);
  if (err != ERR_OK)
    return note_unread(c, err);
  json_t *row = open_envelope(c, payload);
  c->n_rows += row != NULL;
  c->n_deletes += row == NULL;
  if (!row)
    return ERR_OK;
  if (record->has_key && mapped_key_read(&keyless, is_framed, record->key, scratch, &w.key) == ERR_OK &&
      can_be_key(w.key))
    c->n_keyed++;
  else
    w.key = (struct span){ 0 };
  return walk_object(&w, &root, row);
}

void mapping_census_fini(struct mapping_census *c)
{
  for (size_t i = 0; i < c->n_fields; i++)
    mem_free(&c->fields[i].path);
  mem_free(&c->fields);
  *c = (struct mapping_census){ 0 };
}
