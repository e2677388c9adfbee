/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench filtered: RecJPQ's `exact` with filters that admit few or many items, beside the exhaustive scan without a
 * filter. Filters are random, or admit the items that the query likes best, or those that it likes least. They are
 * evaluated before a search is timed, and peers get them evaluated. */
#include <stdio.h>

#include "base/mem.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_peer.h"
#include "tests/bench/recjpq_data.h"

enum { QUERIES = 128, K = 10, FILTER_BYTES = 64, ATTRIBUTES = 2, UPDATE_ITEMS = 4096 };

static const double shares[] = { 1, 0.5, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001 };
enum { SHARES = sizeof shares / sizeof shares[0] };

enum kind { KIND_RANDOM, KIND_LIKED, KIND_DISLIKED, N_KINDS };
static const char *const kind_names[N_KINDS] = { "random", "liked", "disliked" };

struct bench {
  struct bench_options options;
  struct recjpq_data data;
  struct bench_engine engine;
  struct region region;
  float *lot; /* [n_items] uniform in 0..1: the attribute `lot` */
  uint8_t *is_absent;
  size_t code_items[RECJPQ_SUBITEMS]; /* items with each code of the first split */
  struct engine_racer plain, filtered;
  struct peer *peer;
  /* Of the current race and round. */
  enum kind kind;
  double share;
  size_t round;
  struct recjpq_tables tables;
  struct query query;
  struct value codes[RECJPQ_SUBITEMS]; /* of the first split: the filter's list, if n_codes > 0 */
  size_t n_codes;
  double lot_below; /* the filter admits items whose `lot` is below */
  struct truth truth;
  double p95_ms; /* of the last row, in CPU time; 0: there is none */
};

/* Filters -------------------- */

struct subitem {
  float score;
  size_t n;
  uint8_t code;
};

static int by_score(const void *a, const void *b)
{
  const struct subitem *x = a, *y = b;

  return (x->score < y->score) - (x->score > y->score);
}

/* Choose codes of the first split, best or worst first, until they have this share of the items. */
static void choose_codes(struct bench *b)
{
  struct subitem subitems[RECJPQ_SUBITEMS];
  size_t n = 0, wanted = 1 + (size_t)(b->share * (double)(b->data.n_items - 1));

  for (size_t c = 0; c < RECJPQ_SUBITEMS; c++) {
    float score = b->kind == KIND_LIKED ? b->tables.score[0][c] : -b->tables.score[0][c];
    subitems[c] = (struct subitem){ score, b->code_items[c], (uint8_t)c };
  }
  qsort(subitems, RECJPQ_SUBITEMS, sizeof *subitems, by_score);
  for (b->n_codes = 0; b->n_codes < RECJPQ_SUBITEMS && n < wanted; b->n_codes++) {
    b->codes[b->n_codes] = (struct value){ .kind = VALUE_INTEGER, .integer = subitems[b->n_codes].code };
    n += subitems[b->n_codes].n;
  }
  b->lot_below = (double)wanted / (double)n;
}

/* Make the round's filter and query. */
static void make_query(struct bench *b, size_t round)
{
  char *text;
  struct value *parameters;

  b->round = round;
  b->n_codes = 0;
  b->lot_below = b->share;
  region_reset(&b->region);
  recjpq_data_tables_make(&b->data, round, &b->tables);
  bench_check(region_array(&b->region, FILTER_BYTES, 1, &text));
  bench_check(region_array(&b->region, 1, sizeof *parameters, &parameters));
  if (b->kind != KIND_RANDOM)
    choose_codes(b);
  snprintf(text, FILTER_BYTES, b->n_codes ? "lot < %.9f and code in $1" : "lot < %.9f", b->lot_below);
  *parameters = (struct value){ .kind = VALUE_LIST, .list = { b->codes, b->n_codes } };
  b->query = (struct query){ .space = span_of_str("bench"),
                             .k = K,
                             .vector = { b->data.queries + round % QUERIES * RECJPQ_DIM, RECJPQ_DIM },
                             .filter = span_of_str(text),
                             .parameters = parameters,
                             .n_parameters = b->n_codes ? 1 : 0 };
  bench_check(engine_check_filter(b->engine.engine, &b->query, &b->region));
}

/* Make the round's query, and mark the items that its filter does not admit. */
static void mark_absent(struct bench *b, size_t round)
{
  bool is_in[RECJPQ_SUBITEMS] = { false };

  if (b->round != round)
    make_query(b, round);
  for (size_t c = 0; c < b->n_codes; c++)
    is_in[b->codes[c].integer] = true;
  for (size_t i = 0; i < b->data.n_items; i++)
    b->is_absent[i] =
        !((double)b->lot[i] < b->lot_below) || (b->n_codes > 0 && !is_in[b->data.codes[i * RECJPQ_SPLITS]]);
}

static void tell_peers(void *context, size_t round)
{
  struct bench *b = context;

  mark_absent(b, round);
  peer_write_filters(&b->options, b->is_absent, 1, b->data.n_items);
}

static void search(struct bench *b, struct query query)
{
  const struct query *queries = &query;

  bench_check(searcher_search(b->engine.searcher, 0, &b->filtered.method, &queries, 1, b->filtered.answers));
}

/* Before the search is timed, another one with the same filter leaves the filter's bits in the engine's cache. Here are
 * no passes over the catalogue of our own: they would leave the processor's caches cold. */
static void filtered_prepare(void *self, size_t round)
{
  struct bench *b = self;
  struct query other;

  make_query(b, round);
  other = b->query;
  other.vector.v = b->data.queries + (round + QUERIES / 2) % QUERIES * RECJPQ_DIM;
  search(b, other);
}

static void filtered_run(void *self, size_t round)
{
  struct bench *b = self;

  (void)round;
  search(b, b->query);
}

static void filtered_collect(void *self, struct found *found)
{
  engine_racer_collect(&((struct bench *)self)->filtered, found);
}

static const struct truth *truth_of(void *context, size_t round)
{
  struct bench *b = context;

  mark_absent(b, round);
  recjpq_data_scan(&b->tables, b->data.codes, b->is_absent, b->data.n_items, K + 1, &b->truth);
  return &b->truth;
}

static double score_of(void *context, size_t round, size_t query, uint32_t item)
{
  struct bench *b = context;

  (void)query;
  if (b->round != round)
    make_query(b, round);
  return recjpq_data_score(&b->tables, b->data.codes + (size_t)item * RECJPQ_SPLITS);
}

/* Report the rows: the scan, the filtered search, and peers. The steps compare shares of one kind. */
static void report(struct bench *b, const struct race *race)
{
  struct bench_row rows[RACERS_MAX];
  struct bench_row *filtered = &rows[1];

  race_rows(race, rows);
  filtered->p95_to_scalar = filtered->cpu_p95_ms / rows[0].cpu_p95_ms;
  filtered->p95_step = b->p95_ms > 0 ? filtered->cpu_p95_ms / b->p95_ms : 0;
  b->p95_ms = filtered->cpu_p95_ms;
  report_rows(&b->options, rows, race->n_racers);
}

static void race_at(struct bench *b, enum kind kind, double share)
{
  AUTO(race_fini) struct race race = { 0 };
  char variant[32];

  b->kind = kind;
  b->share = share;
  b->round = SIZE_MAX;
  bench_check(race_init(&b->options, b->data.n_items, K, 1, &race));
  race.context = b;
  race.truth_of = truth_of;
  race.score_of = score_of;
  race.tell_peers = tell_peers;
  snprintf(variant, sizeof variant, "%g %% %s", 100 * share, kind_names[kind]);
  race.variant = variant;
  race_add(&race, "scalar", &b->plain, engine_racer_run, NULL); /* the scan: ratios are to it */
  struct racer *racer = race_add(&race, "exact", b, filtered_run, filtered_collect);
  racer->prepare = filtered_prepare;
  racer->must_be_exact = true;
  peer_join(b->peer, &race);
  race_run(&race);
  report(b, &race);
}

/* The catalogue -------------------- */

static void put_attributes(struct bench *b)
{
  static struct item_change changes[UPDATE_ITEMS];
  static struct attribute_value values[UPDATE_ITEMS][ATTRIBUTES];
  static uint8_t keys[UPDATE_ITEMS][BENCH_KEY_BYTES];

  for (size_t first = 0; first < b->data.n_items; first += UPDATE_ITEMS) {
    size_t n = b->data.n_items - first < UPDATE_ITEMS ? b->data.n_items - first : UPDATE_ITEMS;
    for (size_t i = 0; i < n; i++) {
      size_t item = first + i;
      b->lot[item] = (float)dice_below(&b->options.dice, 1 << 24) * 0x1p-24f;
      values[i][0] = (struct attribute_value){ span_of_str("lot"), { .kind = VALUE_NUMBER, .number = b->lot[item] } };
      values[i][1] =
          (struct attribute_value){ span_of_str("code"),
                                    { .kind = VALUE_INTEGER, .integer = b->data.codes[item * RECJPQ_SPLITS] } };
      changes[i] = (struct item_change){ .key = bench_key((uint32_t)item, keys[i]),
                                         .attributes = values[i],
                                         .n_attributes = ATTRIBUTES };
    }
    bench_check(engine_apply(b->engine.engine, changes, n, NULL, 0));
  }
}

static void open_engine(struct bench *b)
{
  static const struct attribute attributes[ATTRIBUTES] = {
    { { (const uint8_t *)"lot", 3 }, ATTRIBUTE_NUMBER },
    { { (const uint8_t *)"code", 4 }, ATTRIBUTE_INTEGER },
  };

  bench_check(bench_engine_open_with((struct attributes){ attributes, ATTRIBUTES },
                                     recjpq_data_write(&b->data, &b->options), b->data.n_items, &b->engine));
  bench_engine_fill(&b->engine, b->data.n_items, recjpq_data_part_of, &b->data);
  put_attributes(b);
}

int main(int argc, char **argv)
{
  static struct bench b;

  bench_begin(argc, argv, &(struct bench_options){ .workload = "filtered", .items = 2194464, .seconds = 1 },
              &b.options);
  recjpq_data_open(&b.options.dice, b.options.items, QUERIES, &b.data);
  bench_check(mem_array(b.data.n_items, sizeof *b.lot, &b.lot));
  bench_check(mem_array(b.data.n_items, 1, &b.is_absent));
  report_begin(&b.options, "RecJPQ with filters; `scalar` is pqtopk without a filter");
  open_engine(&b);
  bench_check(engine_racer_init(&b.engine, "pqtopk", b.data.queries, QUERIES, RECJPQ_DIM, K, 1, &b.plain));
  bench_check(engine_racer_init(&b.engine, "exact", b.data.queries, QUERIES, RECJPQ_DIM, K, 1, &b.filtered));
  for (size_t i = 0; i < b.data.n_items; i++)
    b.code_items[b.data.codes[i * RECJPQ_SPLITS]]++;
  peer_open(&b.options, &b.peer);
  for (int kind = 0; kind < N_KINDS; kind++) {
    b.p95_ms = 0;
    for (size_t i = 0; i < SHARES; i++)
      race_at(&b, (enum kind)kind, shares[i]);
  }
  peer_close(&b.peer);
  bench_engine_close(&b.engine);
  recjpq_data_close(&b.data);
  region_fini(&b.region);
  mem_free(&b.lot);
  mem_free(&b.is_absent);
  return bench_end(&b.options);
}
