/* SPDX-License-Identifier: Apache-2.0 */
/* Types are made one after the other, beginning with the message: a type that a field names is noted, and its turn
 * comes later. So messages may contain each other, and what the message does not lead to need not be complete. */
#include "ingest/protobuf/protobuf_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "ingest/protobuf/protobuf_default.h"
#include "ingest/protobuf/protobuf_set.h"
#include "ingest/protobuf/protobuf_wire.h"

enum { LABEL_REPEATED = 3, LIST_BYTES = 512 };

/* Of editions: descriptor.proto numbers them, and what they can choose. */
enum { EDITION_2023 = 1000, EDITION_2024 = 1001, PRESENCE_EXPLICIT = 1, PRESENCE_IMPLICIT = 2, ENCODING_DELIMITED = 2 };

/* A type whose fields are not made yet. */
struct pending {
  const struct protobuf_definition *of;
  struct protobuf_type *type;
  struct pending *next;
};

struct maker {
  struct region *region;
  const struct protobuf_set *set;
  struct pending *pending;
};

/* Enums -------------------- */

static int compare_values(const void *a, const void *b)
{
  const struct protobuf_enum_value *x = a, *y = b;

  if (x->number != y->number)
    return x->number < y->number ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static err_t copy_name(struct maker *m, const char *name, const char **out)
{
  struct span copy;

  if (!name || !*name || !utf8_is_valid(span_of_str(name)))
    FAIL(ERR_CONFIG, "a name is missing, or is not UTF-8");
  TRY(region_copy(m->region, span_of_str(name), &copy));
  *out = (const char *)copy.p;
  return ERR_OK;
}

static err_t make_enum(struct maker *m, struct protobuf_definition *of, const struct protobuf_enum **out)
{
  const Descriptors__Enum *from = of->enumeration;
  struct protobuf_enum *e = of->made;

  *out = e;
  if (e)
    return ERR_OK;
  TRY(region_array(m->region, 1, sizeof *e, &e));
  TRY(region_array(m->region, from->n_value, sizeof *e->values, &e->values));
  for (size_t i = 0; i < from->n_value; i++) {
    e->values[i] = (struct protobuf_enum_value){ .number = from->value[i]->number, .index = i };
    TRY(copy_name(m, from->value[i]->name, &e->values[i].name));
  }
  e->n = from->n_value;
  qsort(e->values, e->n, sizeof *e->values, compare_values);
  *out = of->made = e;
  return ERR_OK;
}

const char *protobuf_schema_find_value(const struct protobuf_enum *e, int32_t number)
{
  size_t low = 0, high = e->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (e->values[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < e->n && e->values[low].number == number ? e->values[low].name : NULL;
}

/* Messages -------------------- */

static enum protobuf_meaning meaning_of(const char *name)
{
  static const char *const wrappers[] = { "Double", "Float", "Int64",  "UInt64", "Int32",
                                          "UInt32", "Bool",  "String", "Bytes" };
  static const char package[] = "google.protobuf.";
  char wrapper[64];

  if (strcmp(name, "google.protobuf.Timestamp") == 0)
    return PROTOBUF_TIMESTAMP;
  for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++) {
    snprintf(wrapper, sizeof wrapper, "%s%sValue", package, wrappers[i]);
    if (strcmp(name, wrapper) == 0)
      return PROTOBUF_WRAPPER;
  }
  return PROTOBUF_ITSELF;
}

/* Return the type of a message, whose fields may be made later. */
static err_t make_type(struct maker *m, struct protobuf_definition *of, const struct protobuf_type **out)
{
  struct protobuf_type *type = of->made;
  struct pending *pending;

  *out = type;
  if (type)
    return ERR_OK;
  TRY(region_array(m->region, 1, sizeof *type, &type));
  TRY(copy_name(m, of->name, &type->name));
  type->meaning = meaning_of(of->name);
  TRY(region_array(m->region, 1, sizeof *pending, &pending));
  *pending = (struct pending){ of, type, m->pending };
  m->pending = pending;
  *out = of->made = type;
  return ERR_OK;
}

/* Fields -------------------- */

static bool is_repeated(const Descriptors__Field *from)
{
  return from->label == LABEL_REPEATED;
}

static bool is_in_oneof(const Descriptors__Field *from)
{
  return from->has_oneof_index && !(from->has_proto3_optional && from->proto3_optional);
}

/* Editions choose for a field, or for all of a file. */
static int32_t presence_of(const Descriptors__File *file, const Descriptors__Field *from)
{
  const Descriptors__Features *of_field = from->options ? from->options->features : NULL;
  const Descriptors__Features *of_file = file->options ? file->options->features : NULL;

  if (of_field && of_field->has_field_presence)
    return of_field->field_presence;
  return of_file && of_file->has_field_presence ? of_file->field_presence : PRESENCE_EXPLICIT;
}

static bool is_delimited(const Descriptors__File *file, const Descriptors__Field *from)
{
  const Descriptors__Features *of_field = from->options ? from->options->features : NULL;
  const Descriptors__Features *of_file = file->options ? file->options->features : NULL;

  if (of_field && of_field->has_message_encoding)
    return of_field->message_encoding == ENCODING_DELIMITED;
  return of_file && of_file->has_message_encoding && of_file->message_encoding == ENCODING_DELIMITED;
}

static bool is_syntax(const Descriptors__File *file, const char *syntax)
{
  return strcmp(file->syntax ? file->syntax : "", syntax) == 0;
}

/* A newer edition may have other rules. */
static err_t verify_syntax(const Descriptors__File *file)
{
  bool is_known = !file->syntax || is_syntax(file, "") || is_syntax(file, "proto2") || is_syntax(file, "proto3");
  bool is_edition = file->has_edition && file->edition >= EDITION_2023 && file->edition <= EDITION_2024;

  if (!is_known && !(is_syntax(file, "editions") && is_edition))
    FAIL(ERR_CONFIG,
         "its syntax is %s, but only proto2, proto3 and the editions 2023 and 2024 are known: write its file in one of "
         "these",
         is_syntax(file, "editions") ? "an edition" : log_quote(span_of_str(file->syntax)));
  return ERR_OK;
}

/* Is the field not written when it has its default, so that it is there in any case? */
static bool is_implicit(const Descriptors__File *file, const Descriptors__Field *from)
{
  if (is_in_oneof(from))
    return false;
  if (is_syntax(file, "proto3"))
    return !(from->has_proto3_optional && from->proto3_optional);
  return is_syntax(file, "editions") && presence_of(file, from) == PRESENCE_IMPLICIT;
}

static err_t read_default(struct maker *m, const Descriptors__File *file, const Descriptors__Field *from,
                          struct protobuf_field *field)
{
  if (protobuf_schema_is_message(field) || field->is_repeated) {
    field->has_default = field->is_repeated;
    return ERR_OK;
  }
  field->has_default = is_implicit(file, from) || (from->default_value && !is_in_oneof(from));
  return field->has_default && from->default_value ? protobuf_default_read(from->default_value, m->region, field)
                                                   : ERR_OK;
}

static bool is_map_entry(const struct protobuf_definition *d)
{
  return d->message && d->message->options && d->message->options->has_map_entry && d->message->options->map_entry;
}

/* Find the message or the enum of a field. */
static err_t find_type(struct maker *m, const Descriptors__Field *from, struct protobuf_definition **out)
{
  const char *name = from->type_name ? from->type_name : "";

  name += *name == '.';
  *out = protobuf_set_find(m->set, name);
  if (!*out)
    FAIL(ERR_CONFIG, "its type %s is not in the file: make that with protoc's --include_imports",
         log_quote(span_of_str(name)));
  return ERR_OK;
}

static err_t make_reference(struct maker *m, const Descriptors__File *file, const Descriptors__Field *from,
                            struct protobuf_field *field)
{
  struct protobuf_definition *of = NULL;
  bool is_enum = field->kind == PROTOBUF_ENUM;

  TRY(find_type(m, from, &of));
  if (is_enum != !of->message)
    FAIL(ERR_CONFIG, "its type %s is %s", of->name, is_enum ? "no enum" : "no message");
  if (is_enum)
    return make_enum(m, of, &field->enumeration);
  field->is_map = field->is_repeated && is_map_entry(of);
  if (!field->is_map && is_delimited(file, from))
    field->kind = PROTOBUF_GROUP;
  return make_type(m, of, &field->type);
}

static err_t make_field(struct maker *m, const Descriptors__File *file, const Descriptors__Field *from,
                        struct protobuf_field *field)
{
  if (from->number < 1 || from->number > PROTOBUF_NUMBER_MAX)
    FAIL(ERR_CONFIG, "its number is %d: expected 1 to %d", from->number, PROTOBUF_NUMBER_MAX);
  if (from->type < PROTOBUF_DOUBLE || from->type > PROTOBUF_SINT64)
    FAIL(ERR_CONFIG, "its type has the number %d, which is not known", from->type);
  field->number = (uint32_t)from->number;
  field->kind = (enum protobuf_kind)from->type;
  field->is_repeated = is_repeated(from);
  if (protobuf_schema_is_message(field) || field->kind == PROTOBUF_ENUM)
    TRY(make_reference(m, file, from, field));
  return read_default(m, file, from, field);
}

/* Messages, completed -------------------- */

/* Each oneof is a ring of its fields. */
static err_t join_oneofs(struct maker *m, size_t n, Descriptors__Field *const *from, struct protobuf_field *fields)
{
  struct protobuf_field **newest; /* by the number of the oneof */

  TRY(region_array(m->region, n, sizeof *newest, &newest));
  for (size_t i = 0; i < n; i++) {
    int32_t oneof = from[i]->oneof_index;
    if (!is_in_oneof(from[i]))
      continue;
    if (oneof < 0 || (size_t)oneof >= n)
      FAIL(ERR_CONFIG, "its field %s is in oneof %d, which does not exist", fields[i].name, oneof);
    fields[i].next_in_oneof = newest[oneof] ? newest[oneof]->next_in_oneof : &fields[i];
    if (newest[oneof])
      newest[oneof]->next_in_oneof = &fields[i];
    newest[oneof] = &fields[i];
  }
  return ERR_OK;
}

static int compare_numbers(const void *a, const void *b)
{
  const Descriptors__Field *const *x = a, *const *y = b;

  return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

static int compare_names(const void *a, const void *b)
{
  const char *const *x = a, *const *y = b;

  return strcmp(*x, *y);
}

static err_t verify_fields_differ(struct maker *m, const struct protobuf_type *type)
{
  const char **names;

  TRY(region_array(m->region, type->n, sizeof *names, &names));
  for (size_t i = 0; i < type->n; i++) {
    names[i] = type->fields[i].name;
    if (i > 0 && type->fields[i].number == type->fields[i - 1].number)
      FAIL(ERR_CONFIG, "it has two fields of number %u", type->fields[i].number);
  }
  qsort(names, type->n, sizeof *names, compare_names);
  for (size_t i = 1; i < type->n; i++) {
    if (strcmp(names[i], names[i - 1]) == 0)
      FAIL(ERR_CONFIG, "it has two fields %s", names[i]);
  }
  return ERR_OK;
}

/* A map's key is text, an integer or a bool. */
static err_t verify_map_entry(const struct protobuf_type *type)
{
  const struct protobuf_field *key = protobuf_schema_find(type, 1), *value = protobuf_schema_find(type, 2);
  bool is_key = key && !key->is_repeated && !protobuf_schema_is_message(key) && key->kind != PROTOBUF_DOUBLE &&
                key->kind != PROTOBUF_FLOAT && key->kind != PROTOBUF_BYTES && key->kind != PROTOBUF_ENUM;

  if (!is_key || !value || value->is_repeated)
    FAIL(ERR_CONFIG, "it is the entry of a map, but has no key and value");
  return ERR_OK;
}

/* Make the fields of a type by number, where they stay. */
static err_t make_fields(struct maker *m, const struct protobuf_definition *of, struct protobuf_type *type)
{
  size_t n = of->message->n_field;
  Descriptors__Field **from;

  TRY(verify_syntax(of->file));
  TRY(region_array(m->region, n, sizeof *from, &from));
  TRY(region_array(m->region, n, sizeof *type->fields, &type->fields));
  if (n > 0)
    memcpy(from, of->message->field, n * sizeof *from);
  qsort(from, n, sizeof *from, compare_numbers);
  for (size_t i = 0; i < n; i++) {
    struct protobuf_field *field = &type->fields[i];
    TRY(copy_name(m, from[i]->name, &field->name));
    err_code_t err = make_field(m, of->file, from[i], field);
    if (err == ERR_CONFIG)
      FAIL(err, "its field %s: %s", field->name, err_message());
    TRY(err);
    if (is_map_entry(of) && field->kind == PROTOBUF_GROUP) /* what is in a map has a length, whatever the file says */
      field->kind = PROTOBUF_MESSAGE;
  }
  type->n = n;
  TRY(verify_fields_differ(m, type));
  TRY(join_oneofs(m, n, from, type->fields));
  return is_map_entry(of) ? verify_map_entry(type) : ERR_OK;
}

static err_t make_all(struct maker *m)
{
  while (m->pending) {
    const struct pending *next = m->pending;
    m->pending = next->next;
    err_code_t err = make_fields(m, next->of, next->type);
    if (err == ERR_CONFIG)
      FAIL(err, "message %s: %s", next->of->name, err_message());
    TRY(err);
  }
  return ERR_OK;
}

static err_t make(struct maker *m, const char *message, const struct protobuf_type **out)
{
  struct protobuf_definition *of = protobuf_set_find(m->set, message);
  char list[LIST_BYTES];

  if (!of || !of->message)
    FAIL(ERR_CONFIG, "there is no message %s in it, which catalogue.message names; it has: %s",
         log_quote(span_of_str(message)), protobuf_set_list(m->set, list, sizeof list));
  TRY(make_type(m, of, out));
  return make_all(m);
}

err_t protobuf_schema_make(struct span set, const char *message, struct region *r, const struct protobuf_type **out)
{
  AUTO(protobuf_set_fini) struct protobuf_set definitions = { 0 };
  AUTO(region_fini) struct region scratch = { 0 };
  struct maker m = { .region = r, .set = &definitions };

  TRY(protobuf_set_read(set, &scratch, &definitions));
  return make(&m, message, out);
}

/* Finding -------------------- */

const struct protobuf_field *protobuf_schema_find(const struct protobuf_type *type, uint32_t number)
{
  size_t low = 0, high = type->n;

  if (number <= type->n && type->fields[number - 1].number == number) /* without gaps before it */
    return &type->fields[number - 1];
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (type->fields[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < type->n && type->fields[low].number == number ? &type->fields[low] : NULL;
}

const struct protobuf_field *protobuf_schema_find_name(const struct protobuf_type *type, const char *name)
{
  for (size_t i = 0; i < type->n; i++) {
    if (strcmp(type->fields[i].name, name) == 0)
      return &type->fields[i];
  }
  return NULL;
}
