/* SPDX-License-Identifier: Apache-2.0 */
/* Make queries as JSON of rows and lines, with the fields that all of them have. */
#include "daemon/ctl/topk/ctl_topk_queries.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_asking.h"
#include "daemon/ctl/text/ctl_json.h"

enum { K_DEFAULT = 100, NUMBER_BYTES = 24 };

void ctl_topk_query_fini(struct ctl_topk_query *q)
{
  mem_free(&q->id);
  json_decref(q->json);
  q->json = NULL;
}

void ctl_topk_queries_fini(struct ctl_topk_queries *q)
{
  json_decref(q->common);
  json_decref(q->ids);
  ctl_array_fini(&q->array);
  ctl_keys_fini(&q->keys);
  mem_free(&q->numbers);
  ctl_topk_lines_fini(&q->lines);
}

static err_t make_common(const struct ctl_topk_options *o, json_t **out)
{
  json_error_t error = { 0 };
  AUTO(ctl_json_close) json_t *more = NULL;
  AUTO(ctl_json_close)
  json_t *common = o->fields ? json_loads(o->fields, JSON_REJECT_DUPLICATES, &error) : json_object();

  if (!json_is_object(common))
    FAIL(ERR_USAGE, "--fields expects a JSON object, such as '{\"filter\": \"price < 20\"}'%s%s",
         *error.text ? ": " : "", error.text);
  if (json_object_get(common, "id"))
    FAIL(ERR_USAGE, "--fields: all queries would have the same id");
  TRY(ctl_asking_verify_reply_topic(common, o->answer_topic));
  TRY(ctl_fields_make(&o->more, &more));
  TRY(ctl_fields_give(more, "--fields", common));
  if ((o->k || !json_object_get(common, "k")) &&
      json_object_set_new(common, "k", json_integer((json_int_t)(o->k ? o->k : K_DEFAULT))) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  if (!json_object_get(common, "background") && json_object_set_new(common, "background", json_true()) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  *out = common;
  common = NULL;
  return ERR_OK;
}

static err_t open_array(struct ctl_topk_queries *q)
{
  const struct ctl_topk_options *o = q->options;

  TRY(ctl_array_open(o->path, o->tensor, TENSOR_FLOATS, 2, &q->array));
  q->n_rows = q->array.tensor.shape.dim[0];
  if (q->n_rows == 0)
    FAIL(ERR_ITEM, "%s has no rows", o->path);
  TRY(mem_array(q->array.tensor.shape.dim[1], sizeof *q->numbers, &q->numbers));
  return ctl_keys_open(o->keys, "", q->n_rows, &q->keys);
}

err_t ctl_topk_queries_open(const struct ctl_topk_options *options, struct ctl_topk_queries *out)
{
  *out = (struct ctl_topk_queries){ .options = options, .ids = json_object() };
  if (!out->ids)
    FAIL(ERR_MEMORY, "no memory for the ids of queries");
  TRY(make_common(options, &out->common));
  if (ctl_array_is_file(options->path))
    return open_array(out);
  out->has_lines = true;
  return ctl_topk_lines_open(options->path, &out->lines);
}

bool ctl_topk_queries_have_ended(const struct ctl_topk_queries *q)
{
  return q->has_lines ? q->lines.has_ended : q->at == q->n_rows;
}

bool ctl_topk_queries_need_space(const struct ctl_topk_queries *q)
{
  return !q->has_lines && !json_object_get(q->common, "space");
}

err_t ctl_topk_queries_set_space(struct ctl_topk_queries *q, const char *name, size_t query_vector)
{
  if (json_object_set_new(q->common, "space", json_string(name)) != 0)
    FAIL(ERR_USAGE, "--space: %s is not UTF-8", log_quote(span_of_str(name)));
  if (!q->has_lines && query_vector && q->array.tensor.shape.dim[1] != query_vector)
    FAIL(ERR_ITEM, "%s: its rows have %zu numbers where a query of space %s needs %zu", q->options->path,
         q->array.tensor.shape.dim[1], name, query_vector);
  return ERR_OK;
}

/* The parameters of a filter belong to it. */
static bool is_of_filter(const char *name)
{
  return strcmp(name, "filter") == 0 || strcmp(name, "parameters") == 0;
}

/* Is this a field of boosts, of which the query has none, although others have? */
static bool is_of_no_boosts(json_t *query, const char *name)
{
  return strcmp(name, "now_unix_ms") == 0 && ctl_fields_has(query, "boosts") &&
         json_array_size(json_object_get(query, "boosts")) == 0;
}

/* Give a query the fields that all have, unless it has its own. */
static err_t complete(const struct ctl_topk_queries *q, struct ctl_topk_query *query)
{
  AUTO(ctl_json_close) json_t *id = json_string(query->id);
  bool has_filter = ctl_fields_has(query->json, "filter") || ctl_fields_has(query->json, "parameters");
  const char *name;
  json_t *value;

  if (!id)
    FAIL(ERR_QUERY, "the id %s is not UTF-8", log_quote(span_of_str(query->id)));
  json_object_foreach(q->common, name, value)
  {
    if (ctl_fields_has(query->json, name) || (has_filter && is_of_filter(name)) || is_of_no_boosts(query->json, name))
      continue;
    if (json_object_set(query->json, name, value) != 0)
      FAIL(ERR_MEMORY, "no memory for a query");
  }
  if (q->options->excludes_seen && !ctl_fields_has(query->json, "exclude_seen_by") &&
      json_object_set(query->json, "exclude_seen_by", id) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return ERR_OK;
}

/* ---- Rows ---- */

static err_t make_vector(const float *numbers, size_t n, json_t **out)
{
  AUTO(ctl_json_close) json_t *vector = json_array();

  for (size_t i = 0; i < n; i++)
    json_array_append_new(vector, json_real((double)numbers[i])); /* not if it is not finite */
  if (json_array_size(vector) != n)
    FAIL(ERR_ITEM, "a number is not finite");
  *out = vector;
  vector = NULL;
  return ERR_OK;
}

static err_t next_row(struct ctl_topk_queries *q, struct ctl_topk_query *out)
{
  char key[ITEM_KEY_MAX + 1];
  size_t width = q->array.tensor.shape.dim[1];
  json_t *vector = NULL;

  if (q->at == q->n_rows)
    return ERR_OK;
  out->number = q->at++;
  struct span id = ctl_keys_get(&q->keys, out->number, key);
  if (memchr(id.p, 0, id.n))
    FAIL(ERR_ITEM, "its id has a zero byte");
  AUTO(mem_free) char *text = NULL;
  TRY(mem_array(id.n + 1, 1, &text));
  memcpy(text, id.p, id.n);
  tensor_floats(&q->array.tensor, out->number * width, width, q->numbers);
  out->json = json_object();
  TRY(make_vector(q->numbers, width, &vector));
  if (json_object_set_new(out->json, "vector", vector) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  out->id = text;
  text = NULL;
  return complete(q, out);
}

/* ---- Lines ---- */

/* Take the id out of a query. One that has none is called by the number of its line. */
static err_t take_id(struct ctl_topk_query *query)
{
  const json_t *given = json_object_get(query->json, "id");
  char number[NUMBER_BYTES];

  if (given && !json_is_string(given) && !json_is_null(given))
    FAIL(ERR_QUERY, "id: expects a string");
  if (json_string_length(given) != strlen(json_string_length(given) ? json_string_value(given) : ""))
    FAIL(ERR_QUERY, "id: has a zero byte");
  snprintf(number, sizeof number, "%" PRIu64, query->number);
  TRY(mem_copy_str(json_string_length(given) ? json_string_value(given) : number, &query->id));
  json_object_del(query->json, "id");
  return ERR_OK;
}

static err_t make_of_line(struct ctl_topk_queries *q, struct span line, struct ctl_topk_query *out)
{
  json_error_t error;

  out->json = json_loadb((const char *)line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  if (!json_is_object(out->json))
    FAIL(ERR_QUERY, "not a JSON object: %s", out->json ? "it is another value" : error.text);
  TRY(ctl_asking_verify_reply_topic(out->json, q->options->answer_topic));
  TRY(take_id(out));
  return complete(q, out);
}

static err_t next_line(struct ctl_topk_queries *q, struct ctl_topk_query *out)
{
  struct span line;

  for (;;) {
    TRY(ctl_topk_lines_next(&q->lines, &line));
    if (!line.p)
      return ERR_OK;
    out->number = ++q->at;
    if (!ctl_json_is_blank(line))
      return make_of_line(q, line, out);
  }
}

/* Answers are found by ids. Those of rows without --keys are the rows' numbers. */
static err_t verify_unique(struct ctl_topk_queries *q, const struct ctl_topk_query *query)
{
  const json_t *other = json_object_get(q->ids, query->id);

  if (other)
    FAIL(ERR_QUERY, "its id %s is that of %s %" JSON_INTEGER_FORMAT " too", log_quote(span_of_str(query->id)),
         q->has_lines ? "line" : "row", json_integer_value(other));
  if (json_object_set_new(q->ids, query->id, json_integer((json_int_t)query->number)) != 0)
    FAIL(ERR_MEMORY, "no memory for the id of a query");
  return ERR_OK;
}

static err_t next_query(struct ctl_topk_queries *q, struct ctl_topk_query *out)
{
  TRY(q->has_lines ? next_line(q, out) : next_row(q, out));
  return out->id && (q->has_lines || q->options->keys) ? verify_unique(q, out) : ERR_OK;
}

err_t ctl_topk_queries_next(struct ctl_topk_queries *q, struct ctl_topk_query *out)
{
  *out = (struct ctl_topk_query){ 0 };
  err_code_t result = next_query(q, out);
  if (result != ERR_OK)
    ctl_topk_query_fini(out);
  return result;
}
