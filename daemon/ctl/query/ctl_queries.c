/* SPDX-License-Identifier: Apache-2.0 */
/* Give queries ids, check that their answers can be received, and match answers to them. */
#include "daemon/ctl/query/ctl_queries.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_asking.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_option.h"
#include "ingest/json/json_bytes.h"

enum { ID_BYTES = 64 };

err_t ctl_queries_init(struct ctl_queries *q)
{
  *q = (struct ctl_queries){ .series = ctl_asking_series(), .numbers = json_object() };
  if (!q->numbers)
    FAIL(ERR_MEMORY, "no memory for queries");
  return ERR_OK;
}

void ctl_queries_fini(struct ctl_queries *q)
{
  for (size_t i = 0; i < q->n; i++) {
    mem_free(&q->items[i].id);
    mem_free(&q->items[i].text);
    mem_free(&q->items[i].answer);
    mem_free(&q->items[i].failure);
  }
  mem_free(&q->items);
  json_decref(q->numbers);
  *q = (struct ctl_queries){ 0 };
}

/* Give the query an id if it has none. */
static err_t name_query(struct ctl_queries *q, json_t *query)
{
  char id[ID_BYTES];
  const json_t *given = json_object_get(query, "id");

  if (given && !json_is_string(given) && !json_is_null(given))
    FAIL(ERR_QUERY, "id: expects a string");
  if (json_string_length(given) > 0)
    return ERR_OK;
  snprintf(id, sizeof id, "sluicectl-%" PRIx64 "-%zu", q->series, q->n + 1);
  if (json_object_set_new(query, "id", json_string(id)) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return ERR_OK;
}

static err_t verify_unique(const struct ctl_queries *q, const char *id)
{
  if (json_object_get(q->numbers, id))
    FAIL(ERR_QUERY, "id: another query of this command has %s too", log_quote(span_of_str(id)));
  return ERR_OK;
}

err_t ctl_queries_add(struct ctl_queries *q, struct span text, const char *answer_topic)
{
  json_error_t error;
  const size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES;
  AUTO(ctl_json_close) json_t *query = json_loadb((const char *)text.p, text.n, flags, &error);
  AUTO(mem_free) char *dumped = NULL;
  AUTO(mem_free) char *id = NULL;
  char *copy;

  if (!query)
    FAIL(ERR_QUERY, "not JSON: %s", error.text);
  if (!json_is_object(query))
    FAIL(ERR_QUERY, "a query must be an object: {\"space\": ..., \"k\": 10, \"vector\": [...]}");
  TRY(name_query(q, query));
  TRY(ctl_asking_verify_reply_topic(query, answer_topic));
  TRY(mem_copy_str(json_string_value(json_object_get(query, "id")), &id));
  TRY(verify_unique(q, id));
  dumped = json_dumps(query, JSON_COMPACT);
  if (!dumped)
    FAIL(ERR_MEMORY, "no memory for a query");
  TRY(mem_grow(q->n + 1, sizeof *q->items, &q->capacity, &q->items));
  if (json_object_set_new(q->numbers, id, json_integer((json_int_t)q->n)) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  TRY(mem_copy_str(dumped, &copy));
  q->items[q->n++] = (struct ctl_query){ .id = id, .text = copy };
  q->n_open++;
  id = NULL;
  return ERR_OK;
}

static err_t set_text(struct ctl_query *query, const json_t *json)
{
  AUTO(mem_free) char *dumped = json_dumps(json, JSON_COMPACT);
  char *copy;

  if (!dumped)
    FAIL(ERR_MEMORY, "no memory for a query");
  TRY(mem_copy_str(dumped, &copy));
  mem_free(&query->text);
  query->text = copy;
  return ERR_OK;
}

static err_t set_filter(struct ctl_query *query, const char *filter, json_t *parameters)
{
  AUTO(ctl_json_close) json_t *json = json_loads(query->text, 0, NULL);

  if (json_object_get(json, "filter") || json_object_get(json, "parameters"))
    FAIL(ERR_USAGE, "query %s has a filter of its own: leave out --filter, or the filter of the query", query->id);
  if (json_object_set_new(json, "filter", json_string(filter)) != 0) /* also if the text is not UTF-8 */
    FAIL(ERR_USAGE, "--filter: %s is not UTF-8", log_quote(span_of_str(filter)));
  if (parameters && json_object_set(json, "parameters", parameters) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return set_text(query, json);
}

/* Give a query a field that it does not have.
 *
 * name, other  the field, in snake_case and in lowerCamelCase
 * option       that gives it
 * value        is released
 */
static err_t set_field(struct ctl_query *query, const char *name, const char *other, const char *option, json_t *value)
{
  AUTO(ctl_json_close) json_t *json = json_loads(query->text, 0, NULL);
  AUTO(ctl_json_close) json_t *held = value;

  if (!held) /* also if a text is not UTF-8 */
    FAIL(ERR_USAGE, "%s: it is not UTF-8", option);
  if (json_object_get(json, name) || json_object_get(json, other))
    FAIL(ERR_USAGE, "query %s has a field %s of its own: leave out %s", query->id, name, option);
  if (json_object_set(json, name, held) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return set_text(query, json);
}

err_t ctl_queries_space(struct ctl_queries *q, const char *name)
{
  for (size_t i = 0; i < q->n; i++)
    TRY(set_field(&q->items[i], "space", "space", "--space", json_string(name)));
  return ERR_OK;
}

err_t ctl_queries_k(struct ctl_queries *q, uint64_t k)
{
  for (size_t i = 0; i < q->n; i++)
    TRY(set_field(&q->items[i], "k", "k", "--k", json_integer((json_int_t)k)));
  return ERR_OK;
}

static err_t read_vector(const char *numbers, json_t **out)
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
  *out = json_incref(list);
  return ERR_OK;
}

err_t ctl_queries_vector(struct ctl_queries *q, const char *numbers)
{
  AUTO(ctl_json_close) json_t *vector = NULL;

  TRY(read_vector(numbers, &vector));
  for (size_t i = 0; i < q->n; i++)
    TRY(set_field(&q->items[i], "vector", "vector", "--vector", json_incref(vector)));
  return ERR_OK;
}

err_t ctl_queries_exclude_seen_by(struct ctl_queries *q, const char *user)
{
  for (size_t i = 0; i < q->n; i++)
    TRY(set_field(&q->items[i], "exclude_seen_by", "excludeSeenBy", "--exclude-seen-by", json_string(user)));
  return ERR_OK;
}

err_t ctl_queries_like(struct ctl_queries *q, const char *key)
{
  for (size_t i = 0; i < q->n; i++)
    TRY(set_field(&q->items[i], "like", "like", "--like", json_string(key)));
  return ERR_OK;
}

err_t ctl_queries_max_per(struct ctl_queries *q, const struct max_per *max_per)
{
  const struct span name = max_per->attribute;

  for (size_t i = 0; i < q->n; i++) {
    json_t *limit = json_pack("{s:s%, s:I}", "attribute", name.p, name.n, "n", (json_int_t)max_per->n);
    TRY(set_field(&q->items[i], "max_per", "maxPer", "--max-per", limit));
  }
  return ERR_OK;
}

static err_t fail_mmr(const char *text)
{
  FAIL(ERR_USAGE,
       "--mmr expects a number above 0, at most 1, and perhaps how many candidates, at most %d, such as 0.5 or "
       "0.5:100, not %s",
       QUERY_MMR_MAX, log_quote(span_of_str(text)));
}

static err_t read_mmr(const char *text, json_t **out)
{
  char *end;
  double diversity = strtod(text, &end);
  uint64_t candidates = 0;

  if (!(diversity > 0 && diversity <= 1) || (*end && *end != ':'))
    return fail_mmr(text);
  if (*end && ctl_option_number("--mmr", end + 1, 1, QUERY_MMR_MAX, &candidates) != ERR_OK)
    return fail_mmr(text);
  *out = candidates ? json_pack("{s:f, s:I}", "diversity", diversity, "candidates", (json_int_t)candidates)
                    : json_pack("{s:f}", "diversity", diversity);
  return ERR_OK;
}

err_t ctl_queries_mmr(struct ctl_queries *q, const char *text)
{
  AUTO(ctl_json_close) json_t *mmr = NULL;

  TRY(read_mmr(text, &mmr));
  for (size_t i = 0; i < q->n; i++)
    TRY(set_field(&q->items[i], "mmr", "mmr", "--mmr", json_incref(mmr)));
  return ERR_OK;
}

/* Returns NULL if a name is not UTF-8. */
static json_t *make_names(const char *names)
{
  AUTO(ctl_json_close) json_t *list = json_array();

  for (const char *at = names; at; at = strchr(at, ',')) {
    at += *at == ',';
    if (json_array_append_new(list, json_stringn(at, strcspn(at, ","))) != 0)
      return NULL;
  }
  return json_incref(list);
}

err_t ctl_queries_show(struct ctl_queries *q, const char *names)
{
  for (size_t i = 0; i < q->n; i++)
    TRY(set_field(&q->items[i], "attributes", "attributes", "--show", make_names(names)));
  return ERR_OK;
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

/* Returns NULL if a text is not UTF-8. */
static json_t *make_boosts(const struct ctl_boosts *boosts)
{
  AUTO(ctl_json_close) json_t *list = json_array();

  for (size_t i = 0; i < boosts->n; i++) {
    if (json_array_append_new(list, make_boost(&boosts->v[i])) != 0)
      return NULL;
  }
  return json_incref(list);
}

err_t ctl_queries_set_boosts(struct ctl_queries *q, const struct ctl_boosts *boosts)
{
  for (size_t i = 0; i < q->n && boosts->n > 0; i++)
    TRY(set_field(&q->items[i], "boosts", "boosts", "--boost and --boost-if", make_boosts(boosts)));
  for (size_t i = 0; i < q->n && boosts->has_now; i++)
    TRY(set_field(&q->items[i], "now_unix_ms", "nowUnixMs", "--now", json_integer(boosts->now_unix_ms)));
  return ERR_OK;
}

err_t ctl_queries_explain(struct ctl_queries *q, char **keys, int n)
{
  for (size_t i = 0; i < q->n; i++) {
    json_t *list = json_array();
    for (int k = 0; k < n; k++)
      json_array_append_new(list, json_bytes_make(span_of_str(keys[k])));
    TRY(set_field(&q->items[i], "explain", "explain", "a list of keys", list));
  }
  return ERR_OK;
}

err_t ctl_queries_set_filter(struct ctl_queries *q, const char *filter, const char *parameters)
{
  json_error_t error = { 0 };
  AUTO(ctl_json_close) json_t *json = parameters ? json_loads(parameters, 0, &error) : NULL;

  if (parameters && !json_is_array(json))
    FAIL(ERR_USAGE, "--parameters expects a JSON list, such as '[20, [\"de\", \"at\"]]'%s%s", json ? "" : ": ",
         error.text);
  for (size_t i = 0; i < q->n; i++)
    TRY(set_filter(&q->items[i], filter, json));
  return ERR_OK;
}

static bool is_open(const struct ctl_query *query)
{
  return !query->answer && !query->failure;
}

err_t ctl_queries_take(struct ctl_queries *q, struct span answer)
{
  AUTO(ctl_json_close) json_t *json = json_loadb((const char *)answer.p, answer.n, 0, NULL);
  const char *id = json_string_value(json_object_get(json, "id"));
  const json_t *number = id ? json_object_get(q->numbers, id) : NULL;

  if (!number)
    return ERR_OK;
  struct ctl_query *query = &q->items[json_integer_value(number)];
  if (!is_open(query))
    return ERR_OK;
  TRY(mem_copy(answer, &query->answer));
  query->n_answer = answer.n;
  q->n_open--;
  return ERR_OK;
}

err_t ctl_queries_fail(struct ctl_queries *q, size_t i, const char *reason)
{
  if (!is_open(&q->items[i]))
    return ERR_OK;
  TRY(mem_copy_str(reason, &q->items[i].failure));
  q->n_open--;
  return ERR_OK;
}
