/* SPDX-License-Identifier: Apache-2.0 */
/* From options to JSON. */
#include "daemon/ctl/text/ctl_fields.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_option.h"

enum { NAME_MAX_BYTES = 64 };

/* Return the option that gives a field: mostly it has its name. */
static const char *option_of(const char *field, char out[NAME_MAX_BYTES])
{
  if (strcmp(field, "attributes") == 0)
    return "--show";
  if (strcmp(field, "boosts") == 0)
    return "--boost and --boost-if";
  if (strcmp(field, "now_unix_ms") == 0)
    return "--now";
  if (strcmp(field, "explain") == 0)
    return "the keys";
  size_t n = (size_t)snprintf(out, NAME_MAX_BYTES, "--%s", field);
  for (size_t i = 0; i < n && i < NAME_MAX_BYTES; i++)
    out[i] = out[i] == '_' ? '-' : out[i];
  return out;
}

err_t ctl_fields_add(json_t *fields, const char *name, json_t *value)
{
  char option[NAME_MAX_BYTES];

  if (!value)
    FAIL(ERR_USAGE, "%s: it is not UTF-8", option_of(name, option));
  if (json_object_set_new(fields, name, value) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return ERR_OK;
}

/* ---- Making ---- */

/* Without the check, an empty shell variable would admit everything. */
static err_t add_filter(const struct ctl_fields *f, json_t *fields)
{
  json_error_t error = { 0 };

  if (f->parameters && !f->filter)
    FAIL(ERR_USAGE, "--parameters are for a filter: give it as --filter TEXT");
  if (f->filter && !*f->filter)
    FAIL(ERR_USAGE, "--filter expects a condition, such as 'price < 20'; without --filter all items are admitted");
  if (f->filter)
    TRY(ctl_fields_add(fields, "filter", json_string(f->filter)));
  if (!f->parameters)
    return ERR_OK;
  AUTO(ctl_json_close) json_t *parameters = json_loads(f->parameters, 0, &error);
  if (!json_is_array(parameters))
    FAIL(ERR_USAGE, "--parameters expects a JSON list, such as '[20, [\"de\", \"at\"]]'%s%s", parameters ? "" : ": ",
         parameters ? "" : ctl_json_reason(&error));
  return ctl_fields_add(fields, "parameters", json_incref(parameters));
}

static err_t add_max_per(const struct max_per *m, json_t *fields)
{
  if (m->n == 0)
    return ERR_OK;
  return ctl_fields_add(fields, "max_per",
                        json_pack("{s:s%, s:I}", "attribute", m->attribute.p, m->attribute.n, "n", (json_int_t)m->n));
}

static err_t add_mmr(const struct mmr *mmr, json_t *fields)
{
  if (mmr->diversity == 0)
    return ERR_OK;
  return ctl_fields_add(
      fields, "mmr",
      mmr->candidates ? json_pack("{s:f, s:I}", "diversity", mmr->diversity, "candidates", (json_int_t)mmr->candidates)
                      : json_pack("{s:f}", "diversity", mmr->diversity));
}

static err_t add_min_score(const struct ctl_min_score *m, json_t *fields)
{
  return m->is_given ? ctl_fields_add(fields, "min_score", json_real(m->score)) : ERR_OK;
}

/* Without the check, an empty shell variable would do nothing. */
static err_t add_shown(const char *names, json_t *fields)
{
  AUTO(ctl_json_close) json_t *list = json_array();
  bool is_text = true;

  if (!names)
    return ERR_OK;
  if (!*names)
    FAIL(ERR_USAGE, "--show needs names of attributes, such as title,price: it is empty");
  for (const char *at = names; at; at = strchr(at, ',')) {
    at += *at == ',';
    is_text &= json_array_append_new(list, json_stringn(at, strcspn(at, ","))) == 0;
  }
  return ctl_fields_add(fields, "attributes", is_text ? json_incref(list) : NULL);
}

static json_t *make_boost(const struct boost *boost)
{
  bool has_filter = boost->filter.n > 0;
  struct span text = has_filter ? boost->filter : boost->attribute;
  json_t *json = json_pack("{s:f, s:s%}", "weight", boost->weight, has_filter ? "filter" : "attribute", text.p, text.n);

  if (json && boost->half_life_ms > 0)
    json_object_set_new(json, "half_life_ms", json_integer(boost->half_life_ms));
  return json;
}

static err_t add_boosts(const struct ctl_boosts *boosts, json_t *fields)
{
  AUTO(ctl_json_close) json_t *list = json_array();
  bool is_text = true;

  for (size_t i = 0; i < boosts->n; i++)
    is_text &= json_array_append_new(list, make_boost(&boosts->v[i])) == 0;
  if (boosts->n > 0)
    TRY(ctl_fields_add(fields, "boosts", is_text ? json_incref(list) : NULL));
  if (boosts->has_now)
    TRY(ctl_fields_add(fields, "now_unix_ms", json_integer(boosts->now_unix_ms)));
  return ERR_OK;
}

err_t ctl_fields_make(const struct ctl_fields *f, json_t **out)
{
  AUTO(ctl_json_close) json_t *fields = json_object();

  TRY(add_filter(f, fields));
  TRY(add_max_per(&f->max_per, fields));
  TRY(add_mmr(&f->mmr, fields));
  TRY(add_min_score(&f->min_score, fields));
  TRY(add_shown(f->shown, fields));
  TRY(add_boosts(&f->boosts, fields));
  *out = fields;
  fields = NULL;
  return ERR_OK;
}

/* ---- Numbers ---- */

err_t ctl_fields_add_vector(json_t *fields, const char *numbers)
{
  AUTO(ctl_json_close) json_t *list = json_array();
  const char *at = numbers;
  char *end;

  do {
    double number = strtod(at, &end);
    if (end == at || (*end && *end != ',') || json_array_append_new(list, json_real(number)) != 0)
      FAIL(ERR_USAGE, "--vector expects numbers with commas between them, such as 0.3,-0.1,0.7, not %s",
           log_quote(span_of_str(numbers)));
    at = end + 1;
  } while (*end);
  return ctl_fields_add(fields, "vector", json_incref(list));
}

/* ---- Giving ---- */

/* Write a field's name in its other spelling: max_per as maxPer, and the other way. */
static void respell(const char *name, char out[NAME_MAX_BYTES])
{
  size_t n = 0;

  for (; *name && n + 2 < NAME_MAX_BYTES; name++) {
    if (*name == '_' && name[1]) {
      out[n++] = (char)toupper((unsigned char)*++name);
    } else if (isupper((unsigned char)*name)) {
      out[n++] = '_';
      out[n++] = (char)tolower((unsigned char)*name);
    } else {
      out[n++] = *name;
    }
  }
  out[n] = '\0';
}

static bool has(json_t *query, const char *name)
{
  if (json_is_null(json_object_get(query, name)))
    json_object_del(query, name);
  return json_object_get(query, name) != NULL;
}

bool ctl_fields_has(json_t *query, const char *name)
{
  char other[NAME_MAX_BYTES];

  respell(name, other);
  return has(query, name) || has(query, other);
}

/* The parameters of a query belong to its filter. */
static err_t verify_no_parameters(json_t *fields, const char *who, json_t *query)
{
  if (json_object_get(fields, "filter") && ctl_fields_has(query, "parameters"))
    FAIL(ERR_USAGE, "%s has parameters of its own: leave out --filter", who);
  return ERR_OK;
}

err_t ctl_fields_give(json_t *fields, const char *who, json_t *query)
{
  char option[NAME_MAX_BYTES];
  const char *name;
  json_t *value;

  json_object_foreach(fields, name, value)
  {
    if (ctl_fields_has(query, name))
      FAIL(ERR_USAGE, "%s has a field %s of its own: leave out %s", who, name, option_of(name, option));
  }
  TRY(verify_no_parameters(fields, who, query));
  if (fields && json_object_update(query, fields) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return ERR_OK;
}
