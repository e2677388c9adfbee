/* SPDX-License-Identifier: Apache-2.0 */
/* Give queries ids, check that their answers can be received, and match answers to them. */
#include "daemon/ctl/query/ctl_queries.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_asking.h"
#include "daemon/ctl/text/ctl_fields.h"
#include "daemon/ctl/text/ctl_json.h"

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
    FAIL(ERR_QUERY, "cannot be read as JSON: %s", ctl_json_reason(&error));
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

static err_t give(struct ctl_query *query, json_t *fields)
{
  AUTO(ctl_json_close) json_t *json = json_loads(query->text, 0, NULL);
  AUTO(mem_free) char *who = NULL;

  if (asprintf(&who, "query %s", query->id) < 0) {
    who = NULL;
    FAIL(ERR_MEMORY, "no memory for a query");
  }
  TRY(ctl_fields_give(fields, who, json));
  return set_text(query, json);
}

err_t ctl_queries_give(struct ctl_queries *q, json_t *fields)
{
  for (size_t i = 0; i < q->n && json_object_size(fields) > 0; i++)
    TRY(give(&q->items[i], fields));
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
