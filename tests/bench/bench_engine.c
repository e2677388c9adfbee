/* SPDX-License-Identifier: Apache-2.0 */
/* An engine filled for a benchmark, and racers that search it by one method. */
#include "tests/bench/bench_engine.h"

#include <stdio.h>

#include "base/method.h"

enum { FILL_BATCH = 4096 };

static err_t open_engine(const struct engine_config *config, struct bench_engine *out)
{
  TRY(engine_open(config, &out->engine));
  return searcher_open(out->engine, &out->searcher);
}

err_t bench_engine_open(const char *model_path, size_t max_items, size_t max_k, size_t max_batch, enum isa isa,
                        struct bench_engine *out)
{
  struct engine_space space = { .name = "bench", .model_path = model_path };
  struct engine_config config = {
    .spaces = &space,
    .n_spaces = 1,
    .max_items = max_items,
    .max_k = max_k,
    .max_batch = max_batch,
    .isa = isa,
  };

  return open_engine(&config, out);
}

err_t bench_engine_open_with(struct attributes attributes, const char *model_path, size_t max_items,
                             struct bench_engine *out)
{
  struct engine_space space = { .name = "bench", .model_path = model_path };
  struct engine_config config = {
    .spaces = &space,
    .n_spaces = 1,
    .attributes = attributes,
    .max_items = max_items,
    .max_k = BENCH_K_MAX,
    .max_batch = 1,
    .isa = isa_detect(),
  };

  return open_engine(&config, out);
}

err_t bench_engine_open_on(enum engine_backend backend, const char *model_path, size_t max_items,
                           struct bench_engine *out)
{
  static const struct attribute lot = { { (const uint8_t *)"lot", 3 }, ATTRIBUTE_INTEGER };
  struct engine_space space = { .name = "bench", .model_path = model_path };
  struct engine_config config = {
    .spaces = &space,
    .n_spaces = 1,
    .attributes = { &lot, 1 },
    .max_items = max_items,
    .max_k = BENCH_K_MAX,
    .max_batch = BENCH_BATCH_MAX,
    .isa = isa_detect(),
    .backend = backend,
  };

  out->puts_lots = true;
  return open_engine(&config, out);
}

err_t bench_engine_share(size_t n, struct bench_engine *e)
{
  struct engine_threads threads = { .per_search = n, .max = n };

  searcher_close(&e->searcher);
  TRY(engine_share_searches(e->engine, &threads));
  return searcher_open(e->engine, &e->searcher);
}

void bench_engine_close(struct bench_engine *e)
{
  searcher_close(&e->searcher);
  engine_close(&e->engine);
}

struct span bench_key(uint32_t item, uint8_t key[BENCH_KEY_BYTES])
{
  for (int i = 0; i < BENCH_KEY_BYTES; i++)
    key[i] = (uint8_t)(item >> (24 - 8 * i));
  return span_of(key, BENCH_KEY_BYTES);
}

uint32_t bench_item_of(struct span key)
{
  return (uint32_t)key.p[0] << 24 | (uint32_t)key.p[1] << 16 | (uint32_t)key.p[2] << 8 | key.p[3];
}

static struct attribute_value lot_of(uint32_t item)
{
  uint32_t drawn = item * 2654435761u; /* multiplicative hashing */

  return (struct attribute_value){ span_of_str("lot"),
                                   { .kind = VALUE_INTEGER, .integer = (drawn >> 8) % BENCH_LOTS } };
}

void bench_engine_apply(struct bench_engine *e, const uint32_t *items, const bool *is_delete, size_t n,
                        bench_part_of part_of, const void *context)
{
  static _Thread_local struct item_change changes[FILL_BATCH];
  static _Thread_local struct part parts[FILL_BATCH];
  static _Thread_local struct attribute_value lots[FILL_BATCH];
  static _Thread_local uint8_t keys[FILL_BATCH][BENCH_KEY_BYTES];

  for (size_t i = 0; i < n; i++) {
    parts[i] = (struct part){ .space = span_of_str("bench") };
    changes[i] = (struct item_change){ .key = bench_key(items[i], keys[i]), .is_delete = is_delete && is_delete[i] };
    if (!changes[i].is_delete) {
      part_of(context, items[i], &parts[i]);
      changes[i].parts = &parts[i];
      changes[i].n_parts = 1;
      lots[i] = lot_of(items[i]);
      changes[i].attributes = &lots[i];
      changes[i].n_attributes = e->puts_lots;
      bench_check(engine_check_item(e->engine, &changes[i]));
    }
  }
  bench_check(engine_apply(e->engine, changes, n, NULL, 0));
}

void bench_engine_fill(struct bench_engine *e, size_t n, bench_part_of part_of, const void *context)
{
  static uint32_t items[FILL_BATCH];

  for (size_t begin = 0; begin < n; begin += FILL_BATCH) {
    size_t n_batch = n - begin < FILL_BATCH ? n - begin : FILL_BATCH;
    for (size_t i = 0; i < n_batch; i++)
      items[i] = (uint32_t)(begin + i);
    bench_engine_apply(e, items, NULL, n_batch, part_of, context);
    bench_progress("items applied", begin + n_batch, n);
  }
  e->puts_lots = false; /* later changes keep attributes */
}

size_t bench_engine_bytes(const struct bench_engine *e)
{
  struct engine_space_info info;

  engine_space_get(e->engine, 0, &info);
  return info.bytes_per_item;
}

static struct query make_query(const struct engine_racer *r, const char *method, size_t index)
{
  return (struct query){
    .space = span_of_str("bench"),
    .method = span_of_str(method),
    .k = r->k,
    .vector = { r->queries + index % r->n_queries * r->dim, r->dim },
  };
}

/* Give a query its filter. */
static err_t add_filter(struct engine_racer *r, size_t index, struct region *region, struct query *query)
{
  enum { TEXT_BYTES = 64 };
  size_t first = r->n_filters > 1 ? index % r->n_filters * ((BENCH_LOTS - r->n_lots) / r->n_filters) : 0;
  char *text;

  if (r->n_lots == 0)
    return ERR_OK;
  TRY(region_array(region, TEXT_BYTES, 1, &text));
  snprintf(text, TEXT_BYTES, "lot between %zu and %zu", first, first + r->n_lots - 1);
  query->filter = span_of_str(text);
  return engine_check_filter(r->engine->engine, query, region);
}

err_t engine_racer_init(struct bench_engine *e, const char *method, const float *queries, size_t n_queries, size_t dim,
                        uint32_t k, size_t batch, struct engine_racer *out)
{
  *out = (struct engine_racer){ .engine = e, .queries = queries, .dim = dim, .n_queries = n_queries, .batch = batch };
  out->k = k;
  for (size_t i = 0; i < n_queries; i++) {
    struct query query = make_query(out, method, i);
    TRY(engine_check_query(e->engine, &query, &out->space, &out->method));
  }
  return ERR_OK;
}

err_t engine_racer_try(struct engine_racer *r, size_t round)
{
  static _Thread_local struct region filters;
  struct query queries[BENCH_BATCH_MAX];
  const struct query *pointers[BENCH_BATCH_MAX];

  region_reset(&filters);
  for (size_t i = 0; i < r->batch; i++) {
    queries[i] = make_query(r, "", round * r->batch + i);
    TRY(add_filter(r, round * r->batch + i, &filters, &queries[i]));
    pointers[i] = &queries[i];
  }
  return searcher_search(r->engine->searcher, r->space, &r->method, pointers, r->batch, r->answers);
}

void engine_racer_search(struct engine_racer *r, size_t round)
{
  bench_check(engine_racer_try(r, round));
}

void engine_racer_run(void *self, size_t round)
{
  engine_racer_search(self, round);
}

void engine_racer_collect(void *self, struct found *found)
{
  struct engine_racer *r = self;

  for (size_t i = 0; i < r->batch; i++) {
    const struct answer *answer = &r->answers[i];
    found[i] = (struct found){ .n = answer->n_hits, .receipt = answer->receipt, .has_receipt = true };
    found[i].n_scored = answer->counts.scored;
    found[i].has_scores = true;
    for (size_t h = 0; h < answer->n_hits; h++) {
      found[i].ids[h] = bench_item_of(answer->hits[h].key);
      found[i].scores[h] = answer->hits[h].score;
    }
  }
}
