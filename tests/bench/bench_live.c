/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench live: one thread searches while another applies 10,000 updates a second, in batches every 10 ms. Updates
 * are switched on and off in turns, so idle and live times are from one run. Answers are judged afterwards: the log of
 * updates gives the catalogue at each answer's epoch. */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_writer.h"
#include "tests/bench/live_log.h"
#include "tests/bench/mol_oracle.h"
#include "tests/bench/recjpq_data.h"

enum { QUERIES = 256, TIMES_MAX = 1 << 20, SAMPLES = 60, WINDOWS = 10 };

/* One similarity under test. */
struct subject {
  const char *method;
  size_t k, dim, row_bytes;
  const float *queries;
  bool is_exact;
  bench_part_of part_of;
  void (*draw)(struct dice *dice, uint8_t *row);
  /* Compare an answer with the rows of its epoch. */
  void (*judge)(struct live_log *log, const struct live_sample *sample);
};

struct bench {
  struct bench_options options;
  const struct subject *subject;
  struct bench_engine engine;
  struct live_log log;
  struct dice writer_dice;
  struct bench_writer writer;
  uint64_t n_updates;
  double live_ms;
  double *times[2]; /* idle, live */
  size_t n_times[2];
  struct live_sample samples[2 * SAMPLES];
  size_t n_samples;
};

static struct recjpq_data codes;
static struct mol_data vectors;

/* The writer -------------------- */

/* Three updates of ten delete an item, which may be absent already. The others put one. */
static void write_batch(void *context, size_t n)
{
  struct bench *b = context;
  uint32_t items[BENCH_WRITER_MAX];
  bool is_delete[BENCH_WRITER_MAX];
  size_t n_once = 0;
  struct engine_epoch epoch;

  live_log_begin(&b->log);
  for (size_t i = 0; i < n; i++) {
    items[n_once] = (uint32_t)dice_below(&b->writer_dice, b->log.n_rows);
    is_delete[n_once] = i % 10 < 3;
    if (!live_log_has(&b->log, items[n_once])) {
      live_log_add(&b->log, items[n_once], !is_delete[n_once]);
      n_once++;
    }
  }
  for (size_t i = 0; i < n_once; i++) {
    if (!is_delete[i])
      b->subject->draw(&b->writer_dice, live_log_row(&b->log, items[i]));
  }
  bench_engine_apply(&b->engine, items, is_delete, n_once, b->subject->part_of, &b->log);
  engine_epoch_get(b->engine.engine, &epoch, NULL, 0);
  live_log_end(&b->log, epoch.number);
  b->n_updates += n_once;
}

/* The searcher -------------------- */

static void keep_sample(struct bench *b, struct engine_racer *racer, size_t round)
{
  static struct found found[BENCH_BATCH_MAX];
  struct live_sample *sample = &b->samples[b->n_samples++];

  engine_racer_collect(racer, found);
  sample->found = found[0];
  sample->epoch = racer->answers[0].epoch;
  sample->query = round % QUERIES;
}

static void search_window(struct bench *b, struct engine_racer *racer, size_t window, double ms)
{
  bool is_live = window % 2;
  double begin = bench_wall_ms(), now = begin;
  size_t n_kept = 0, n_wanted = SAMPLES * 2 / WINDOWS / 2 + 1;

  bench_writer_set(&b->writer, is_live);
  for (size_t round = window * 1000003; now - begin < ms; round++) {
    double start = bench_wall_ms();
    engine_racer_search(racer, round);
    now = bench_wall_ms();
    if (b->n_times[is_live] < TIMES_MAX)
      b->times[is_live][b->n_times[is_live]++] = now - start;
    bool is_due = is_live && n_kept < n_wanted && now - begin > ms * (double)n_kept / (double)n_wanted;
    if (is_due && b->n_samples < sizeof b->samples / sizeof b->samples[0]) {
      keep_sample(b, racer, round);
      n_kept++;
    }
  }
  b->live_ms += is_live ? now - begin : 0;
}

static void search_all(struct bench *b)
{
  static struct engine_racer racer;
  double ms = b->options.seconds * 2e3 / WINDOWS;

  b->writer_dice.state = dice_u64(&b->options.dice);
  bench_check(engine_racer_init(&b->engine, b->subject->method, b->subject->queries, QUERIES, b->subject->dim,
                                (uint32_t)b->subject->k, 1, &racer));
  engine_racer_search(&racer, 0);
  b->writer.write = write_batch;
  b->writer.context = b;
  bench_writer_start(&b->writer);
  for (size_t window = 0; window < WINDOWS; window++) {
    search_window(b, &racer, window, ms);
    bench_progress("windows, idle and live in turns", window + 1, WINDOWS);
  }
  bench_writer_stop(&b->writer);
}

/* Judging -------------------- */

static void recjpq_judge(struct live_log *log, const struct live_sample *sample)
{
  static struct recjpq_tables tables;
  static struct truth truth;

  recjpq_data_tables_make(&codes, sample->query, &tables);
  recjpq_data_scan(&tables, log->rows, log->is_absent, log->n_rows, sample->found.n, &truth);
  for (size_t i = 0; i < truth.n; i++) {
    uint32_t id = sample->found.ids[i];
    double score = recjpq_data_score(&tables, log->rows + (size_t)id * RECJPQ_SPLITS);
    if (log->is_absent[id] || fabs(score - truth.scores[i]) > 2 * truth.tolerance)
      bench_fail("recjpq, epoch %llu: hit %zu is not that of the epoch's catalogue", (unsigned long long)sample->epoch,
                 i);
  }
}

static void mol_judge(struct live_log *log, const struct live_sample *sample)
{
  struct mol_oracle_query query;

  mol_oracle_prepare(&vectors, vectors.queries + sample->query * MOL_DIM, &query);
  for (size_t i = 0; i < sample->found.n; i++) {
    uint32_t id = sample->found.ids[i];
    double score =
        mol_oracle_score(&vectors, &query, (const float *)(const void *)(log->rows + (size_t)id * MOL_DIM * 4));
    if (log->is_absent[id] || fabs(score - (double)sample->found.scores[i]) > 4e-4)
      bench_fail("mol, epoch %llu: hit %zu is not one of the epoch's catalogue", (unsigned long long)sample->epoch, i);
  }
}

/* Reporting -------------------- */

static struct bench_row make_row(const struct bench *b, bool is_live)
{
  const double *times = b->times[is_live];
  size_t n = b->n_times[is_live];
  struct bench_row row = {
    .method = b->subject->method,
    .variant = is_live ? "live" : "idle",
    .items = b->options.items,
    .k = b->subject->k,
    .batch = 1,
    .threads = 1,
    .n_runs = n,
    .median_ms = bench_quantile(times, n, 0.5),
    .p95_ms = bench_quantile(times, n, 0.95),
    .p99_ms = bench_quantile(times, n, 0.99),
    .bytes_per_item = (double)bench_engine_bytes(&b->engine),
  };

  if (is_live) {
    row.other = "idle p99";
    row.ratio_to_other = row.p99_ms / bench_quantile(b->times[0], b->n_times[0], 0.99);
    row.items_per_s = (double)b->n_updates / b->live_ms * 1e3;
    row.verdict = b->subject->is_exact ? VERDICT_EXACT : VERDICT_UNCHECKED;
    row.recall = 1; /* if one were not, the exit status would be 1 */
  }
  return row;
}

static void run_subject(const struct bench_options *options, const struct subject *subject, const char *model,
                        const void *rows)
{
  static struct bench b;

  b = (struct bench){ .options = *options, .subject = subject };
  /* At the start, a quarter of the item numbers are absent. Updates put them. */
  size_t n_rows = options->items + options->items / 4;
  for (int i = 0; i < 2; i++)
    bench_check(mem_array(TIMES_MAX, sizeof *b.times[i], &b.times[i]));
  live_log_open(&b.log, rows, n_rows, options->items, subject->row_bytes);
  bench_check(bench_engine_open(model, n_rows, BENCH_K_MAX, 1, isa_detect(), &b.engine));
  bench_engine_fill(&b.engine, options->items, subject->part_of, &b.log);
  search_all(&b);
  live_log_judge(&b.log, b.samples, b.n_samples, subject->judge);
  struct bench_row both[2] = { make_row(&b, false), make_row(&b, true) };
  report_rows(options, both, 2);
  bench_engine_close(&b.engine);
  live_log_close(&b.log);
  for (int i = 0; i < 2; i++)
    mem_free(&b.times[i]);
}

static void codes_part_of(const void *context, uint32_t item, struct part *part)
{
  part->codes = span_of(live_log_row((struct live_log *)context, item), RECJPQ_SPLITS);
}

static void vector_part_of(const void *context, uint32_t item, struct part *part)
{
  part->vector =
      (struct floats){ (const float *)(const void *)live_log_row((struct live_log *)context, item), MOL_DIM };
}

static void draw_vector(struct dice *dice, uint8_t *row)
{
  mol_data_draw_item(dice, (float *)(void *)row);
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = { .workload = "live", .items = 0, .seconds = 15 };
  struct bench_options options;

  bench_begin(argc, argv, &defaults, &options);
  report_begin(&options, "Searches while 10,000 updates a second are applied (items/s: updates reached)");
  size_t n_codes = options.items ? options.items : 2194464, n_vectors = options.items ? options.items : 674044;

  options.items = n_codes;
  recjpq_data_open(&options.dice, n_codes + n_codes / 4, QUERIES, &codes);
  run_subject(&options,
              &(struct subject){ "exact", 10, RECJPQ_DIM, RECJPQ_SPLITS, codes.queries, true, codes_part_of,
                                 recjpq_data_draw_codes, recjpq_judge },
              recjpq_data_write(&codes, &options), codes.codes);
  recjpq_data_close(&codes);

  options.items = n_vectors;
  mol_data_open(&options.dice, n_vectors + n_vectors / 4, QUERIES, &vectors);
  run_subject(&options,
              &(struct subject){ "average(4000)", 100, MOL_DIM, MOL_DIM * 4, vectors.queries, false, vector_part_of,
                                 draw_vector, mol_judge },
              mol_data_write(&vectors, &options), vectors.items);
  mol_data_close(&vectors);
  return bench_end(&options);
}
