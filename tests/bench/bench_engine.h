/* SPDX-License-Identifier: Apache-2.0 */
/* An engine with one space, "bench". An item's key is its number. Thread: see engine/engine.h. */
#ifndef TESTS_BENCH_BENCH_ENGINE_H
#define TESTS_BENCH_BENCH_ENGINE_H

#include "engine/engine.h"
#include "tests/bench/bench_race.h"

/* Keys are big-endian, so that items with equal scores are ordered by number. */
enum { BENCH_KEY_BYTES = 4 };

struct bench_engine {
  struct engine *engine;
  struct searcher *searcher;
  bool puts_lots; /* until it is filled: items get the attribute `lot`, an integer below BENCH_LOTS, as if drawn */
};

enum { BENCH_LOTS = 1000 };

/* Open an engine at an instruction-set level. Returns ERR_CONFIG if the items do not fit into memory, or ERR_MODEL. */
err_t bench_engine_open(const char *model_path, size_t max_items, size_t max_k, size_t max_batch, enum isa isa,
                        struct bench_engine *out);
void bench_engine_close(struct bench_engine *e);

/* Let n threads share its work. Call it at most once, before the first search. */
err_t bench_engine_share(size_t n, struct bench_engine *e);

/* The same at the processor's best level, for single queries over items with these attributes, which the engine
 * copies. */
err_t bench_engine_open_with(struct attributes attributes, const char *model_path, size_t max_items,
                             struct bench_engine *out);

/* The same on a given backend, at the processor's best level, with lots. */
err_t bench_engine_open_on(enum engine_backend backend, const char *model_path, size_t max_items,
                           struct bench_engine *out);

struct span bench_key(uint32_t item, uint8_t key[BENCH_KEY_BYTES]);
uint32_t bench_item_of(struct span key);

/* Callback: write an item's part->vector or part->codes. */
typedef void (*bench_part_of)(const void *context, uint32_t item, struct part *part);

/* Apply n <= 4096 changes in one batch. is_delete: a flag for each change; NULL: all are puts. */
void bench_engine_apply(struct bench_engine *e, const uint32_t *items, const bool *is_delete, size_t n,
                        bench_part_of part_of, const void *context);

/* Put items 0 to n - 1 in batches, and show progress. */
void bench_engine_fill(struct bench_engine *e, size_t n, bench_part_of part_of, const void *context);

size_t bench_engine_bytes(const struct bench_engine *e);

/* One method on one engine, as a racer. Its queries are vectors of a pool. */
struct engine_racer {
  struct bench_engine *engine;
  struct method method;
  size_t space;         /* number */
  const float *queries; /* [n_queries][dim] */
  size_t dim, n_queries, batch;
  uint32_t k;
  size_t n_lots;    /* the items of so many lots are admitted; 0: all are, and there is no filter */
  size_t n_filters; /* so many different filters, in turns */
  struct answer answers[BENCH_BATCH_MAX];
};

/* Returns ERR_METHOD if the engine lacks the method. */
err_t engine_racer_init(struct bench_engine *e, const char *method, const float *queries, size_t n_queries, size_t dim,
                        uint32_t k, size_t batch, struct engine_racer *out);

/* Search the queries of a round and store the results in `answers`. */
void engine_racer_search(struct engine_racer *r, size_t round);

/* The same for a search that may fail. Returns the error of searcher_search(). */
err_t engine_racer_try(struct engine_racer *r, size_t round);

/* For races: run() and collect() of struct racer. */
void engine_racer_run(void *self, size_t round);
void engine_racer_collect(void *self, struct found *found);

#endif
