/* SPDX-License-Identifier: Apache-2.0 */
/* Make queries as JSON, whatever their source, and translate them to protobuf. */
#include "daemon/ctl/bench/ctl_bench_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto_close.h"
#include "base/mem.h"
#include "base/query.h"
#include "daemon/ctl/array/ctl_array.h"
#include "daemon/ctl/ctl_asking.h"
#include "daemon/ctl/text/ctl_fields.h"
#include "daemon/ctl/text/ctl_json.h"
#include "ingest/wire/wire_client.h"

enum { ID_FIELD = 1 << 3 | 2, ID_MAX = 127 }; /* of field 1 of Query, and so that its length takes a byte */

/* Encode a query and add it. */
static err_t add(struct ctl_bench_pool *p, const json_t *query)
{
  AUTO(mem_free) char *text = json_dumps(query, JSON_COMPACT | JSON_REAL_PRECISION(17));
  struct span made;

  if (!text)
    FAIL(ERR_MEMORY, "no memory for a query");
  TRY(mem_grow(p->n + 1, sizeof *p->queries, &p->capacity, &p->queries));
  TRY(wire_translate_query(span_of_str(text), &p->region, &made));
  return region_copy(&p->region, made, &p->queries[p->n++]);
}

/* Make the fields that all queries have. The caller releases them. */
static err_t make_common(const struct ctl_bench_pool_options *o, json_t **out)
{
  AUTO(ctl_json_close) json_t *common = json_object();

  TRY(ctl_fields_add(common, "k", json_integer((json_int_t)o->k)));
  if (o->space)
    TRY(ctl_fields_add(common, "space", json_string(o->space)));
  if (o->method)
    TRY(ctl_fields_add(common, "method", json_string(o->method)));
  *out = common;
  common = NULL;
  return ERR_OK;
}

/* ---- Vectors ---- */

static err_t add_vector(struct ctl_bench_pool *p, const json_t *common, const float *numbers, size_t n)
{
  AUTO(ctl_json_close) json_t *query = json_copy((json_t *)(uintptr_t)common);
  json_t *vector = json_array();

  for (size_t i = 0; i < n; i++)
    json_array_append_new(vector, json_real((double)numbers[i])); /* not if it is not finite */
  if (json_array_size(vector) != n) {
    json_decref(vector);
    FAIL(ERR_ITEM, "a number is not finite");
  }
  if (json_object_set_new(query, "vector", vector) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return add(p, query);
}

static err_t add_rows(struct ctl_bench_pool *p, const struct ctl_bench_pool_options *o, const json_t *common)
{
  AUTO(ctl_array_fini) struct ctl_array a = { 0 };
  AUTO(mem_free) float *numbers = NULL;
  char reason[256];

  TRY(ctl_array_open(o->path, o->tensor, TENSOR_FLOATS, 2, &a));
  size_t n = a.tensor.shape.dim[0], width = a.tensor.shape.dim[1];
  if (o->query_vector && width != o->query_vector)
    FAIL(ERR_ITEM, "%s: its rows have %zu numbers where a query of space %s needs %zu", o->path, width, o->space,
         o->query_vector);
  TRY(mem_array(width, sizeof *numbers, &numbers));
  for (size_t row = 0; row < n; row++) {
    tensor_floats(&a.tensor, row * width, width, numbers);
    err_code_t result = add_vector(p, common, numbers, width);
    if (result == ERR_OK)
      continue;
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(result, "%s, row %zu: %s", o->path, row, reason);
  }
  return ERR_OK;
}

/* The next 64 random bits, by splitmix64: the same from a seed on every machine. */
static uint64_t next_bits(uint64_t *state)
{
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* A normal number, by Box and Muller: the directions of random vectors are then uniform. */
static float next_normal(uint64_t *state)
{
  double radius = ((double)(next_bits(state) >> 11) + 0.5) * 0x1p-53,
         angle = (double)(next_bits(state) >> 11) * 0x1p-53;

  return (float)(sqrt(-2 * log(radius)) * cos(2 * M_PI * angle));
}

static err_t add_random(struct ctl_bench_pool *p, const struct ctl_bench_pool_options *o, const json_t *common)
{
  AUTO(mem_free) float *numbers = NULL;
  uint64_t state = o->seed;

  if (o->query_vector == 0)
    FAIL(ERR_USAGE, "the daemon does not say how long a vector of a query is: give queries as --queries FILE");
  TRY(mem_array(o->query_vector, sizeof *numbers, &numbers));
  for (uint64_t i = 0; i < o->n_random; i++) {
    for (size_t d = 0; d < o->query_vector; d++)
      numbers[d] = next_normal(&state);
    TRY(add_vector(p, common, numbers, o->query_vector));
  }
  return ERR_OK;
}

/* ---- Lines ---- */

static err_t add_line(struct ctl_bench_pool *p, const struct ctl_bench_pool_options *o, json_t *common,
                      struct span line)
{
  json_error_t error;
  AUTO(ctl_json_close) json_t *query = json_loadb((const char *)line.p, line.n, JSON_REJECT_DUPLICATES, &error);

  if (!json_is_object(query))
    FAIL(ERR_QUERY, "not a JSON object: %s", query ? "it is another value" : error.text);
  TRY(ctl_asking_verify_reply_topic(query, o->answer_topic));
  TRY(ctl_fields_give(o->fields, "the query", query));
  json_object_del(query, "id");
  if (json_object_update_missing(query, common) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  return add(p, query);
}

static err_t add_lines(struct ctl_bench_pool *p, const struct ctl_bench_pool_options *o, json_t *common)
{
  AUTO(auto_close_file) FILE *file = fopen(o->path, "re");
  AUTO(mem_free) char *line = NULL;
  size_t capacity = 0;
  char reason[256];
  ssize_t n;

  if (!file)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", o->path, strerror(errno));
  for (uint64_t number = 1; (n = getline(&line, &capacity, file)) >= 0; number++) {
    struct span text = span_of(line, (size_t)n);
    err_code_t result = ctl_json_is_blank(text) ? ERR_OK : add_line(p, o, common, text);
    if (result == ERR_OK)
      continue;
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(result, "%s, line %" PRIu64 ": %s", o->path, number, reason);
  }
  if (ferror(file))
    FAIL(ERR_SYSTEM, "%s cannot be read to its end: %s", o->path, strerror(errno));
  return ERR_OK;
}

err_t ctl_bench_pool_open(const struct ctl_bench_pool_options *o, struct ctl_bench_pool *out)
{
  AUTO(ctl_json_close) json_t *common = NULL;

  *out = (struct ctl_bench_pool){ 0 };
  TRY(make_common(o, &common));
  if (!o->path || ctl_array_is_file(o->path))
    TRY(ctl_fields_give(o->fields, "the query", common));
  if (!o->path)
    TRY(add_random(out, o, common));
  else if (ctl_array_is_file(o->path))
    TRY(add_rows(out, o, common));
  else
    TRY(add_lines(out, o, common));
  if (out->n == 0)
    FAIL(ERR_QUERY, "%s has no queries", o->path);
  return ERR_OK;
}

void ctl_bench_pool_fini(struct ctl_bench_pool *p)
{
  mem_free(&p->queries);
  region_fini(&p->region);
}

err_t ctl_bench_pool_name(const struct ctl_bench_pool *p, uint64_t i, const char *id, uint8_t **buffer,
                          size_t *capacity, struct span *out)
{
  struct span query = p->queries[i % p->n];
  size_t n_id = strlen(id);

  if (n_id > ID_MAX)
    FAIL(ERR_QUERY, "an id of %zu bytes is too long", n_id);
  TRY(mem_grow(query.n + 2 + n_id, 1, capacity, buffer));
  if (query.n)
    memcpy(*buffer, query.p, query.n);
  (*buffer)[query.n] = ID_FIELD;
  (*buffer)[query.n + 1] = (uint8_t)n_id;
  memcpy(*buffer + query.n + 2, id, n_id);
  *out = span_of(*buffer, query.n + 2 + n_id);
  return ERR_OK;
}
