/* SPDX-License-Identifier: Apache-2.0 */
/* Make queries as JSON of rows and lines, with the fields that all of them have. */
#include "daemon/ctl/topk/ctl_topk_queries.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/query.h"
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
  ctl_array_fini(&q->array);
  ctl_keys_fini(&q->keys);
  mem_free(&q->numbers);
  mem_free(&q->line);
  if (q->file && q->file != stdin)
    fclose(q->file);
}

static err_t make_common(const struct ctl_topk_options *o, json_t **out)
{
  json_error_t error = { 0 };
  AUTO(ctl_json_close)
  json_t *common = o->fields ? json_loads(o->fields, JSON_REJECT_DUPLICATES, &error) : json_object();

  if (!json_is_object(common))
    FAIL(ERR_USAGE, "--fields expects a JSON object, such as '{\"filter\": \"price < 20\"}'%s%s",
         *error.text ? ": " : "", error.text);
  if (json_object_get(common, "id"))
    FAIL(ERR_USAGE, "--fields: all queries would have the same id");
  if (o->space && json_object_set_new(common, "space", json_string(o->space)) != 0)
    FAIL(ERR_USAGE, "--space: %s is not UTF-8", o->space);
  if ((o->k || !json_object_get(common, "k")) &&
      json_object_set_new(common, "k", json_integer((json_int_t)(o->k ? o->k : K_DEFAULT))) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  *out = common;
  common = NULL;
  return ERR_OK;
}

static err_t open_array(struct ctl_topk_queries *q, size_t query_vector)
{
  const struct ctl_topk_options *o = q->options;

  TRY(ctl_array_open(o->path, o->tensor, TENSOR_FLOATS, 2, &q->array));
  size_t width = q->array.tensor.shape.dim[1];
  q->n_rows = q->array.tensor.shape.dim[0];
  if (q->n_rows == 0)
    FAIL(ERR_ITEM, "%s has no rows", o->path);
  if (query_vector && width != query_vector)
    FAIL(ERR_ITEM, "%s: its rows have %zu numbers where a query of the space needs %zu", o->path, width, query_vector);
  TRY(mem_array(width, sizeof *q->numbers, &q->numbers));
  return ctl_keys_open(o->keys, "", q->n_rows, &q->keys);
}

err_t ctl_topk_queries_open(const struct ctl_topk_options *options, size_t query_vector, struct ctl_topk_queries *out)
{
  *out = (struct ctl_topk_queries){ .options = options };
  TRY(make_common(options, &out->common));
  if (ctl_array_is_file(options->path))
    return open_array(out, query_vector);
  out->file = strcmp(options->path, "-") == 0 ? stdin : fopen(options->path, "re");
  if (!out->file)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", options->path, strerror(errno));
  return ERR_OK;
}

/* Give a query the fields that all have, unless it has its own. */
static err_t complete(const struct ctl_topk_queries *q, struct ctl_topk_query *query)
{
  const struct ctl_topk_options *o = q->options;

  AUTO(ctl_json_close) json_t *id = json_string(query->id);

  if (!id)
    FAIL(ERR_QUERY, "the id %s is not UTF-8", log_quote(span_of_str(query->id)));
  if (json_object_update_missing(query->json, q->common) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  if (o->excludes_seen && json_object_set(query->json, "exclude_seen_by", id) != 0)
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

static err_t verify_reply_topic(const struct ctl_topk_queries *q, const json_t *query)
{
  const json_t *topic = json_object_get(query, "reply_topic");

  topic = topic ? topic : json_object_get(query, "replyTopic");
  if (json_string_length(topic) > 0 && strcmp(json_string_value(topic), q->options->answer_topic) != 0)
    FAIL(ERR_QUERY, "reply_topic: the answer would go to %s, but sluicectl reads answers from %s",
         json_string_value(topic), q->options->answer_topic);
  return ERR_OK;
}

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
  TRY(verify_reply_topic(q, out->json));
  TRY(take_id(out));
  return complete(q, out);
}

static err_t next_line(struct ctl_topk_queries *q, struct ctl_topk_query *out)
{
  ssize_t n;

  while ((n = getline(&q->line, &q->capacity, q->file)) >= 0) {
    struct span line = span_of(q->line, (size_t)n);
    out->number = ++q->at;
    if (!ctl_json_is_blank(line))
      return make_of_line(q, line, out);
  }
  if (ferror(q->file))
    FAIL(ERR_SYSTEM, "%s cannot be read to its end: %s", q->options->path, strerror(errno));
  return ERR_OK;
}

err_t ctl_topk_queries_next(struct ctl_topk_queries *q, struct ctl_topk_query *out)
{
  *out = (struct ctl_topk_query){ 0 };
  err_code_t result = q->file ? next_line(q, out) : next_row(q, out);
  if (result != ERR_OK)
    ctl_topk_query_fini(out);
  return result;
}
