/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench apply: how many catalogue records a second one core decodes, prepares and writes to the arenas. With
 * --threads, others help it to prepare them. */
#include <stdio.h>

#include "base/mem.h"
#include "base/size.h"
#include "ingest/wire/wire.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bilinear_data.h"
#include "tests/bench/mol_data.h"
#include "tests/bench/recjpq_data.h"

/* One batch: at 100,000 items a second, what a publish interval of 10 ms holds. */
enum { BATCH = 1000, PHASES = 3 };

static const char *const phase_names[PHASES] = { "insert", "update", "delete" };

struct bench {
  struct bench_options options;
  struct bench_engine engine;
  struct region messages; /* encoded values */
  struct region decoded;
  struct span *values; /* [items] */
  double *times;       /* [items / BATCH] */
  double *decode_times;
};

static void encode(struct bench *b, bench_part_of part_of, const void *context)
{
  region_reset(&b->messages);
  for (size_t i = 0; i < b->options.items; i++) {
    struct part part = { .space = span_of_str("bench") };
    struct item_change change = { .parts = &part, .n_parts = 1 };
    part_of(context, (uint32_t)i, &part);
    bench_check(wire_encode_item(&change, WIRE_PROTOBUF, &b->messages, &b->values[i]));
  }
}

/* Decode and apply one batch of records as the daemon does. Return the CPU milliseconds of decoding alone. */
static double take_batch(struct bench *b, size_t begin, size_t n, const uint32_t *order, bool is_delete)
{
  static struct item_change changes[BATCH];
  static uint8_t keys[BATCH][BENCH_KEY_BYTES];
  double start = bench_cpu_ms();

  region_reset(&b->decoded);
  for (size_t i = 0; i < n; i++) {
    uint32_t item = order[begin + i];
    changes[i] = (struct item_change){ .key = bench_key(item, keys[i]), .is_delete = is_delete };
    if (!is_delete)
      bench_check(wire_decode_item(b->values[item], WIRE_PROTOBUF, &b->decoded, &changes[i]));
    bench_check(engine_check_item(b->engine.engine, &changes[i]));
  }
  double decoded = bench_cpu_ms() - start;
  bench_check(engine_apply(b->engine.engine, changes, n, NULL, 0));
  return decoded;
}

static void shuffle(struct dice *dice, uint32_t *order, size_t n)
{
  for (size_t i = n; i > 1; i--) {
    size_t j = dice_below(dice, i);
    uint32_t other = order[j];
    order[j] = order[i - 1];
    order[i - 1] = other;
  }
}

static struct bench_row run_phase(struct bench *b, const char *method, size_t phase, uint32_t *order)
{
  size_t n_batches = b->options.items / BATCH;
  double cpu = 0, begin = bench_wall_ms();

  shuffle(&b->options.dice, order, b->options.items);
  for (size_t i = 0; i < n_batches; i++) {
    double wall = bench_wall_ms(), start = bench_cpu_ms();
    b->decode_times[i] = take_batch(b, i * BATCH, BATCH, order, phase == 2);
    cpu += bench_cpu_ms() - start;
    b->times[i] = bench_wall_ms() - wall;
    if (i % 50 == 49 || i + 1 == n_batches)
      bench_progress(phase_names[phase], (i + 1) * BATCH, n_batches * BATCH);
  }
  return (struct bench_row){
    .method = method,
    .variant = phase_names[phase],
    .items = b->options.items,
    .batch = BATCH,
    .threads = b->options.threads,
    .n_runs = n_batches,
    .median_ms = bench_quantile(b->times, n_batches, 0.5),
    .p95_ms = bench_quantile(b->times, n_batches, 0.95),
    .p99_ms = bench_quantile(b->times, n_batches, 0.99),
    .cpu_ms = cpu / (double)n_batches,
    .bytes_per_item = (double)bench_engine_bytes(&b->engine),
    .items_per_s = (double)(n_batches * BATCH) / (b->options.threads == 1 ? cpu : bench_wall_ms() - begin) * 1e3,
  };
}

static struct bench_row decode_row(const struct bench *b, const struct bench_row *update)
{
  struct bench_row row = *update;

  row.variant = "decoding alone";
  row.median_ms = bench_quantile(b->decode_times, row.n_runs, 0.5);
  row.p95_ms = bench_quantile(b->decode_times, row.n_runs, 0.95);
  row.p99_ms = row.cpu_ms = row.bytes_per_item = 0;
  row.items_per_s = BATCH / row.median_ms * 1e3;
  return row;
}

/* Check that the arenas hold what was put. */
static void verify_count(const struct bench *b, size_t want)
{
  struct engine_epoch epoch;

  engine_epoch_get(b->engine.engine, &epoch, NULL, 0);
  if (epoch.n_items != want)
    bench_fail("%llu items after the phase, not %zu", (unsigned long long)epoch.n_items, want);
}

static void run_space(struct bench *b, const char *method, const char *model, bench_part_of part_of,
                      const void *context)
{
  size_t n = b->options.items, n_batches = n / BATCH;
  struct bench_row rows[PHASES + 1];
  uint32_t *order;

  bench_check(mem_array(n, sizeof *order, &order));
  for (size_t i = 0; i < n; i++)
    order[i] = (uint32_t)i;
  bench_check(bench_engine_open(model, n, BENCH_K_MAX, 1, isa_detect(), &b->engine));
  bench_check(bench_engine_share(b->options.threads, &b->engine));
  encode(b, part_of, context);
  for (size_t phase = 0; phase < PHASES; phase++) {
    rows[phase] = run_phase(b, method, phase, order);
    if (phase == 1)
      rows[PHASES] = decode_row(b, &rows[phase]);
    if (n % BATCH == 0)
      verify_count(b, phase == 2 ? 0 : n_batches * BATCH);
  }
  report_rows(&b->options, rows, PHASES + 1);
  bench_engine_close(&b->engine);
  mem_free(&order);
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = { .workload = "apply", .items = 200000, .threads = 1 };
  static struct bench b;
  struct recjpq_data codes;
  struct mol_data vectors;
  struct bilinear_data rotated;

  bench_begin(argc, argv, &defaults, &b.options);
  b.options.items = b.options.items / BATCH * BATCH;
  bench_check(mem_array(b.options.items, sizeof *b.values, &b.values));
  bench_check(mem_array(b.options.items / BATCH, sizeof *b.times, &b.times));
  bench_check(mem_array(b.options.items / BATCH, sizeof *b.decode_times, &b.decode_times));
  report_begin(&b.options, b.options.threads == 1
                               ? "Records into both arenas, batches of 1,000, protobuf; items/s of processor time"
                               : "Records into both arenas, batches of 1,000, protobuf; items/s");
  recjpq_data_open(&b.options.dice, b.options.items, 1, &codes);
  run_space(&b, "recjpq", recjpq_data_write(&codes, &b.options), recjpq_data_part_of, &codes);
  recjpq_data_close(&codes);
  mol_data_open(&b.options.dice, b.options.items, 1, &vectors);
  run_space(&b, "mol", mol_data_write(&vectors, &b.options), mol_data_part_of, &vectors);
  mol_data_close(&vectors);
  b.options.items = size_max(b.options.items / 4 / BATCH, 1) * BATCH; /* 6 KB each, beside the arenas */
  bilinear_data_open(&b.options.dice, b.options.items, 1, &rotated);
  run_space(&b, "bilinear", bilinear_data_write(&rotated, &b.options), bilinear_data_part_of, &rotated);
  bilinear_data_close(&rotated);
  region_fini(&b.messages);
  region_fini(&b.decoded);
  mem_free(&b.values);
  mem_free(&b.times);
  mem_free(&b.decode_times);
  return bench_end(&b.options);
}
