/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a schema. Types with names are known from the moment that their definition begins, so that they may contain
 * themselves. */
#include "ingest/avro/avro_schema.h"

#include <string.h>

#include "base/log.h"

enum {
  DEPTH_MAX = 64,      /* of types in types */
  CHILDREN_MAX = 4096, /* of one type */
  FIXED_MAX = 1 << 20,
  SCALE_MAX = 18,
};

static const char *const primitives[] = {
  [AVRO_NULL] = "null",   [AVRO_BOOLEAN] = "boolean", [AVRO_INT] = "int",     [AVRO_LONG] = "long",
  [AVRO_FLOAT] = "float", [AVRO_DOUBLE] = "double",   [AVRO_BYTES] = "bytes", [AVRO_STRING] = "string",
};

enum { N_PRIMITIVES = sizeof primitives / sizeof primitives[0] };

struct named {
  const char *name; /* in full */
  const struct avro_type *type;
  const struct named *next;
};

struct maker {
  struct region *region;
  const struct named *named;
};

/* Where the maker is: for names without a namespace, and for errors. */
struct scope {
  const char *space; /* the namespace; "" for none */
  const char *field; /* the innermost field; "the schema" outside of one */
  int depth;
};

static err_t make_type(struct maker *m, const struct scope *scope, const json_t *json, const struct avro_type **out);

static err_t copy_text(struct maker *m, const char *text, const char **out)
{
  struct span copy;

  TRY(region_copy(m->region, span_of_str(text), &copy));
  *out = (const char *)copy.p;
  return ERR_OK;
}

/* Return the name in full: a name with a dot is. It lives in the region. */
static err_t full_name(struct maker *m, const char *space, const char *name, const char **out)
{
  size_t n = strlen(space) + strlen(name) + 2;
  char *text;

  if (!*space || strchr(name, '.'))
    return copy_text(m, name, out);
  TRY(region_array(m->region, n, 1, &text));
  snprintf(text, n, "%s.%s", space, name);
  *out = text;
  return ERR_OK;
}

static const struct avro_type *find_named(const struct maker *m, const char *name)
{
  for (const struct named *n = m->named; n; n = n->next) {
    if (strcmp(n->name, name) == 0)
      return n->type;
  }
  return NULL;
}

static bool find_primitive(const char *name, enum avro_kind *out)
{
  for (int i = 0; i < N_PRIMITIVES; i++) {
    if (strcmp(primitives[i], name) == 0) {
      *out = (enum avro_kind)i;
      return true;
    }
  }
  return false;
}

static err_t new_type(struct maker *m, enum avro_kind kind, size_t n, struct avro_type **out)
{
  TRY(region_array(m->region, 1, sizeof **out, out));
  **out = (struct avro_type){ .kind = kind, .n = n };
  TRY(region_array(m->region, n, sizeof *(*out)->names, &(*out)->names));
  return region_array(m->region, n, sizeof *(*out)->types, &(*out)->types);
}

/* A type by its name alone. */
static err_t make_by_name(struct maker *m, const struct scope *scope, const char *name, const struct avro_type **out)
{
  struct avro_type *type;
  enum avro_kind kind;
  const char *full;

  if (find_primitive(name, &kind)) {
    TRY(new_type(m, kind, 0, &type));
    *out = type;
    return ERR_OK;
  }
  TRY(full_name(m, scope->space, name, &full));
  *out = find_named(m, full);
  if (!*out)
    *out = find_named(m, name);
  if (!*out)
    FAIL(ERR_CONFIG, "%s: there is no type %s", scope->field, log_quote(span_of_str(name)));
  return ERR_OK;
}

static err_t read_list(const struct scope *scope, const json_t *json, const char *member, const json_t **out)
{
  *out = json_object_get(json, member);
  if (!json_is_array(*out) || json_array_size(*out) > CHILDREN_MAX)
    FAIL(ERR_CONFIG, "%s: expected a list of at most %d in \"%s\"", scope->field, CHILDREN_MAX, member);
  return ERR_OK;
}

static err_t make_union(struct maker *m, const struct scope *scope, const json_t *json, const struct avro_type **out)
{
  struct avro_type *type;
  size_t n = json_array_size(json);

  if (n < 1 || n > CHILDREN_MAX)
    FAIL(ERR_CONFIG, "%s: a union of %zu types: it has 1 to %d", scope->field, n, CHILDREN_MAX);
  TRY(new_type(m, AVRO_UNION, n, &type));
  for (size_t i = 0; i < n; i++)
    TRY(make_type(m, scope, json_array_get(json, i), &type->types[i]));
  *out = type;
  return ERR_OK;
}

static err_t make_fields(struct maker *m, const struct scope *scope, const json_t *fields, struct avro_type *type)
{
  for (size_t i = 0; i < type->n; i++) {
    const json_t *field = json_array_get(fields, i);
    const char *name = json_string_value(json_object_get(field, "name"));
    if (!name)
      FAIL(ERR_CONFIG, "%s: field %zu of its record has no name", scope->field, i);
    TRY(copy_text(m, name, &type->names[i]));
    const struct scope inner = { scope->space, type->names[i], scope->depth };
    TRY(make_type(m, &inner, json_object_get(field, "type"), &type->types[i]));
  }
  return ERR_OK;
}

static err_t make_symbols(struct maker *m, const struct scope *scope, const json_t *symbols, struct avro_type *type)
{
  for (size_t i = 0; i < type->n; i++) {
    const char *symbol = json_string_value(json_array_get(symbols, i));
    if (!symbol)
      FAIL(ERR_CONFIG, "%s: symbol %zu of its enum is no text", scope->field, i);
    TRY(copy_text(m, symbol, &type->names[i]));
  }
  return ERR_OK;
}

/* Of a record, an enum or a fixed: let the rest of the schema name it. inner: the scope of what is in it. */
static err_t add_name(struct maker *m, const struct scope *scope, const json_t *json, const struct avro_type *type,
                      struct scope *inner)
{
  const char *name = json_string_value(json_object_get(json, "name"));
  const char *space = json_string_value(json_object_get(json, "namespace"));
  struct named *named;

  *inner = *scope;
  if (!name)
    FAIL(ERR_CONFIG, "%s: its %s has no name", scope->field, json_string_value(json_object_get(json, "type")));
  TRY(region_array(m->region, 1, sizeof *named, &named));
  TRY(full_name(m, space ? space : scope->space, name, &named->name));
  named->type = type;
  named->next = m->named;
  m->named = named;
  const char *dot = strrchr(named->name, '.');
  struct span of = span_of(named->name, dot ? (size_t)(dot - named->name) : 0), copy;
  TRY(region_copy(m->region, of, &copy));
  inner->space = (const char *)copy.p;
  return ERR_OK;
}

static err_t make_record(struct maker *m, const struct scope *scope, const json_t *json, struct avro_type **out)
{
  const json_t *fields = NULL;
  struct scope inner;

  TRY(read_list(scope, json, "fields", &fields));
  TRY(new_type(m, AVRO_RECORD, json_array_size(fields), out));
  TRY(add_name(m, scope, json, *out, &inner));
  return make_fields(m, &inner, fields, *out);
}

static err_t make_enum(struct maker *m, const struct scope *scope, const json_t *json, struct avro_type **out)
{
  const json_t *symbols = NULL;
  struct scope inner;

  TRY(read_list(scope, json, "symbols", &symbols));
  TRY(new_type(m, AVRO_ENUM, json_array_size(symbols), out));
  TRY(add_name(m, scope, json, *out, &inner));
  return make_symbols(m, scope, symbols, *out);
}

static err_t make_fixed(struct maker *m, const struct scope *scope, const json_t *json, struct avro_type **out)
{
  const json_t *size = json_object_get(json, "size");
  struct scope inner;

  if (!json_is_integer(size) || json_integer_value(size) < 0 || json_integer_value(size) > FIXED_MAX)
    FAIL(ERR_CONFIG, "%s: the size of its fixed is 0 to %d", scope->field, FIXED_MAX);
  TRY(new_type(m, AVRO_FIXED, 0, out));
  (*out)->size = (size_t)json_integer_value(size);
  return add_name(m, scope, json, *out, &inner);
}

static err_t make_of(struct maker *m, const struct scope *scope, const json_t *json, enum avro_kind kind,
                     const char *member, struct avro_type **out)
{
  TRY(new_type(m, kind, 1, out));
  return make_type(m, scope, json_object_get(json, member), &(*out)->types[0]);
}

static bool is_word(const char *word, const char *wanted)
{
  return strcmp(word, wanted) == 0;
}

/* Leaves NULL if the word makes no type. */
static err_t make_by_word(struct maker *m, const struct scope *scope, const json_t *json, const char *word,
                          struct avro_type **out)
{
  enum avro_kind kind;

  if (is_word(word, "record") || is_word(word, "error"))
    return make_record(m, scope, json, out);
  if (is_word(word, "enum"))
    return make_enum(m, scope, json, out);
  if (is_word(word, "fixed"))
    return make_fixed(m, scope, json, out);
  if (is_word(word, "array"))
    return make_of(m, scope, json, AVRO_ARRAY, "items", out);
  if (is_word(word, "map"))
    return make_of(m, scope, json, AVRO_MAP, "values", out);
  *out = NULL;
  return find_primitive(word, &kind) ? new_type(m, kind, 0, out) : ERR_OK;
}

/* As the specification says, a logical type that does not fit its type, or is unknown, is none. */
static void read_logical(const json_t *json, struct avro_type *type)
{
  const char *logical = json_string_value(json_object_get(json, "logicalType"));
  const json_t *scale = json_object_get(json, "scale");
  json_int_t n = json_integer_value(scale); /* 0 without one */

  if (!logical)
    return;
  bool is_bytes = type->kind == AVRO_BYTES || type->kind == AVRO_FIXED, is_long = type->kind == AVRO_LONG;
  if (is_bytes && is_word(logical, "decimal") && (!scale || json_is_integer(scale)) && n >= 0 && n <= SCALE_MAX) {
    type->logical = AVRO_DECIMAL;
    type->scale = (uint32_t)n;
  } else if (type->kind == AVRO_INT && is_word(logical, "date")) {
    type->logical = AVRO_DATE;
  } else if (is_long && (is_word(logical, "timestamp-micros") || is_word(logical, "local-timestamp-micros"))) {
    type->logical = AVRO_MICROS;
  } else if (is_long && (is_word(logical, "timestamp-nanos") || is_word(logical, "local-timestamp-nanos"))) {
    type->logical = AVRO_NANOS;
  }
}

static err_t make_from_object(struct maker *m, const struct scope *scope, const json_t *json,
                              const struct avro_type **out)
{
  const json_t *inner = json_object_get(json, "type");
  struct avro_type *type = NULL;

  if (!json_is_string(inner))
    return make_type(m, scope, inner, out); /* {"type": {"type": "array", ...}} */
  TRY(make_by_word(m, scope, json, json_string_value(inner), &type));
  if (!type)
    return make_by_name(m, scope, json_string_value(inner), out);
  read_logical(json, type);
  *out = type;
  return ERR_OK;
}

static err_t make_type(struct maker *m, const struct scope *scope, const json_t *json, const struct avro_type **out)
{
  const struct scope inner = { scope->space, scope->field, scope->depth + 1 };

  if (inner.depth > DEPTH_MAX)
    FAIL(ERR_CONFIG, "%s: types are nested more than %d deep", scope->field, DEPTH_MAX);
  if (json_is_string(json))
    return make_by_name(m, &inner, json_string_value(json), out);
  if (json_is_array(json))
    return make_union(m, &inner, json, out);
  if (json_is_object(json))
    return make_from_object(m, &inner, json, out);
  FAIL(ERR_CONFIG, "%s: expected a type: a name, a list or an object", scope->field);
}

err_t avro_schema_make(const json_t *others, const json_t *schema, struct region *r, const struct avro_type **out)
{
  struct maker m = { .region = r };
  const struct scope scope = { .space = "", .field = "the schema" };

  for (size_t i = 0; i < json_array_size(others); i++)
    TRY(make_type(&m, &scope, json_array_get(others, i), out));
  return make_type(&m, &scope, schema, out);
}
