/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench filters_live: searches with filters while another thread applies 10,000 updates a second, in batches every
 * 10 ms: of vectors, of an attribute that the filters do not name, or of the one that they name. Updates are switched
 * on and off in turns, so idle and live times are from one run. The ratio is of processor time. */
#include <stdio.h>

#include "base/mem.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_writer.h"
#include "tests/bench/recjpq_data.h"

enum { QUERIES = 64, K = 10, FILTERS = 4, ATTRIBUTES = 2, FILL_ITEMS = 4096, WINDOWS = 10, TIMES_MAX = 1 << 20 };
enum kind { KIND_VECTORS, KIND_OTHER, KIND_NAMED, N_KINDS };

static const char *const kind_names[N_KINDS] = { "vectors", "another attribute", "the filter's attribute" };
static const char *const filters[FILTERS] = { "lot < 0.5", "lot < 0.1", "lot between 0.2 and 0.25", "lot >= 0.99" };

/* Changes of one batch, and what they point to. */
struct updates {
  struct item_change changes[FILL_ITEMS];
  struct attribute_value values[FILL_ITEMS][ATTRIBUTES];
  struct part parts[FILL_ITEMS];
  uint8_t keys[FILL_ITEMS][BENCH_KEY_BYTES];
};

struct bench {
  struct bench_options options;
  struct recjpq_data data;
  struct bench_engine engine;
  struct region region;
  struct query queries[QUERIES];
  struct method method;
  struct dice writer_dice;
  struct updates updates;
  enum kind kind;
  struct bench_writer writer;
  uint64_t n_updates;
  double live_ms;
  double *times[2], *cpu[2]; /* idle, live: wall and processor time of the searches */
  size_t n_times[2];
};

/* Updates -------------------- */

static struct attribute_value draw_lot(struct dice *dice)
{
  double lot = (double)dice_below(dice, 1 << 24) * 0x1p-24;

  return (struct attribute_value){ span_of_str("lot"), { .kind = VALUE_NUMBER, .number = lot } };
}

static struct attribute_value draw_mark(struct dice *dice)
{
  int64_t mark = (int64_t)dice_below(dice, 1000);

  return (struct attribute_value){ span_of_str("mark"), { .kind = VALUE_INTEGER, .integer = mark } };
}

/* Give an item the codes of a random one. */
static void draw_part(struct bench *b, struct part *part)
{
  *part = (struct part){ .space = span_of_str("bench") };
  recjpq_data_part_of(&b->data, (uint32_t)dice_below(&b->writer_dice, b->data.n_items), part);
}

static void write_batch(void *context, size_t n)
{
  struct bench *b = context;
  struct updates *u = &b->updates;

  for (size_t i = 0; i < n; i++) {
    uint32_t item = (uint32_t)dice_below(&b->writer_dice, b->data.n_items);
    u->changes[i] = (struct item_change){ .key = bench_key(item, u->keys[i]) };
    if (b->kind == KIND_VECTORS) {
      draw_part(b, &u->parts[i]);
      u->changes[i].parts = &u->parts[i];
      u->changes[i].n_parts = 1;
    } else {
      u->values[i][0] = b->kind == KIND_OTHER ? draw_mark(&b->writer_dice) : draw_lot(&b->writer_dice);
      u->changes[i].attributes = u->values[i];
      u->changes[i].n_attributes = 1;
    }
  }
  bench_check(engine_apply(b->engine.engine, u->changes, n, NULL, 0));
  b->n_updates += n;
}

/* Searches -------------------- */

static void prepare_queries(struct bench *b)
{
  size_t space;

  for (size_t q = 0; q < QUERIES; q++) {
    b->queries[q] = (struct query){ .space = span_of_str("bench"),
                                    .k = K,
                                    .vector = { b->data.queries + q * RECJPQ_DIM, RECJPQ_DIM },
                                    .filter = span_of_str(filters[q % FILTERS]) };
    bench_check(engine_check_query(b->engine.engine, &b->queries[q], &space, &b->method));
    bench_check(engine_check_filter(b->engine.engine, &b->queries[q], &b->region));
  }
}

static void search_window(struct bench *b, bool is_live, double ms)
{
  double begin = bench_wall_ms(), now = begin;
  struct answer answer;

  bench_writer_set(&b->writer, is_live);
  for (size_t round = 0; now - begin < ms; round++) {
    const struct query *query = &b->queries[round % QUERIES];
    double start = bench_wall_ms(), cpu = bench_cpu_ms();
    bench_check(searcher_search(b->engine.searcher, 0, &b->method, &query, 1, &answer));
    cpu = bench_cpu_ms() - cpu;
    now = bench_wall_ms();
    if (b->n_times[is_live] == TIMES_MAX)
      continue;
    b->cpu[is_live][b->n_times[is_live]] = cpu;
    b->times[is_live][b->n_times[is_live]++] = now - start;
  }
  b->live_ms += is_live ? now - begin : 0;
}

static struct bench_row row_of(const struct bench *b, bool is_live)
{
  const double *times = b->times[is_live], *cpu = b->cpu[is_live];
  size_t n = b->n_times[is_live];
  struct bench_row row = { .method = is_live ? kind_names[b->kind] : "no updates",
                           .items = b->data.n_items,
                           .k = K,
                           .batch = 1,
                           .threads = 1,
                           .n_runs = n,
                           .median_ms = bench_quantile(times, n, 0.5),
                           .p95_ms = bench_quantile(times, n, 0.95),
                           .p99_ms = bench_quantile(times, n, 0.99),
                           .cpu_ms = bench_quantile(cpu, n, 0.5),
                           .cpu_p95_ms = bench_quantile(cpu, n, 0.95) };

  if (is_live) {
    row.other = "idle CPU p99";
    row.ratio_to_other = bench_quantile(cpu, n, 0.99) / bench_quantile(b->cpu[0], b->n_times[0], 0.99);
    row.items_per_s = (double)b->n_updates / b->live_ms * 1e3;
  }
  return row;
}

static void run_kind(struct bench *b, enum kind kind)
{
  struct bench_row rows[2];

  b->kind = kind;
  b->n_times[0] = b->n_times[1] = 0;
  b->n_updates = 0;
  b->live_ms = 0;
  b->writer.write = write_batch;
  b->writer.context = b;
  bench_writer_start(&b->writer);
  for (size_t window = 0; window < WINDOWS; window++)
    search_window(b, window % 2, b->options.seconds * 2e3 / WINDOWS);
  bench_writer_stop(&b->writer);
  for (int i = 0; i < 2; i++)
    rows[i] = row_of(b, i);
  report_rows(&b->options, rows, 2);
}

/* The catalogue -------------------- */

static void put_attributes(struct bench *b)
{
  struct updates *u = &b->updates;

  for (size_t first = 0; first < b->data.n_items; first += FILL_ITEMS) {
    size_t n = b->data.n_items - first < FILL_ITEMS ? b->data.n_items - first : (size_t)FILL_ITEMS;
    for (size_t i = 0; i < n; i++) {
      u->values[i][0] = draw_lot(&b->options.dice);
      u->values[i][1] = draw_mark(&b->options.dice);
      u->changes[i] = (struct item_change){ .key = bench_key((uint32_t)(first + i), u->keys[i]),
                                            .attributes = u->values[i],
                                            .n_attributes = ATTRIBUTES };
    }
    bench_check(engine_apply(b->engine.engine, u->changes, n, NULL, 0));
  }
}

static void open_engine(struct bench *b)
{
  static const struct attribute attributes[ATTRIBUTES] = {
    { { (const uint8_t *)"lot", 3 }, ATTRIBUTE_NUMBER },
    { { (const uint8_t *)"mark", 4 }, ATTRIBUTE_INTEGER },
  };

  bench_check(bench_engine_open_with((struct attributes){ attributes, ATTRIBUTES },
                                     recjpq_data_write(&b->data, &b->options), b->data.n_items, &b->engine));
  bench_engine_fill(&b->engine, b->data.n_items, recjpq_data_part_of, &b->data);
  put_attributes(b);
}

int main(int argc, char **argv)
{
  static struct bench b;

  bench_begin(argc, argv, &(struct bench_options){ .workload = "filters_live", .items = 2194464, .seconds = 5 },
              &b.options);
  b.writer_dice.state = dice_u64(&b.options.dice);
  recjpq_data_open(&b.options.dice, b.options.items, QUERIES, &b.data);
  for (int i = 0; i < 2; i++) {
    bench_check(mem_array(TIMES_MAX, sizeof *b.times[i], &b.times[i]));
    bench_check(mem_array(TIMES_MAX, sizeof *b.cpu[i], &b.cpu[i]));
  }
  report_begin(&b.options,
               "Searches with filters while 10,000 updates a second are applied (items/s: updates reached)");
  open_engine(&b);
  prepare_queries(&b);
  for (int kind = 0; kind < N_KINDS; kind++)
    run_kind(&b, (enum kind)kind);
  bench_engine_close(&b.engine);
  recjpq_data_close(&b.data);
  region_fini(&b.region);
  for (int i = 0; i < 2; i++) {
    mem_free(&b.times[i]);
    mem_free(&b.cpu[i]);
  }
  return bench_end(&b.options);
}
