/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench merge: what a merge takes for the parts of one query, from decoding them to the encoded answer. What Kafka
 * takes comes on top. Before the times of a layout, one answer is checked: K hits in falling order, the first and the
 * last of which have the scores that they should have. */
#include <stdio.h>

#include "base/mem.h"
#include "daemon/merge/merge_batch.h"
#include "ingest/wire/wire_partial.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_draw.h"
#include "tests/bench/bench_report.h"

enum { KEY_BYTES = 20, K_MAX = 2000, SHARDS_MAX = 64, RUNS_MAX = 2000, SHARD_ITEMS = 1000000 };

struct bench {
  struct bench_options options;
  struct config config;
  struct counters counters;
  struct merge_counters merge_counters;
  struct merge_batch batch;
  struct open_joins *joins;
  struct region made, scratch;
  size_t k, n_shards;
  struct span values[SHARDS_MAX];    /* of the parts' records */
  double scores[SHARDS_MAX * K_MAX]; /* of all hits */
  size_t n_scores;
  double wall_ms[RUNS_MAX], cpu_ms[RUNS_MAX];
};

static int compare_falling(const void *a, const void *b)
{
  return bench_compare_doubles(b, a);
}

/* Draw K scores in falling order, like those of hits: the best of many. */
static void draw_scores(struct dice *dice, size_t k, double *scores)
{
  for (size_t i = 0; i < k; i++)
    scores[i] = -log(draw_unit(dice));
  qsort(scores, k, sizeof *scores, compare_falling);
}

static void make_answer(struct bench *b, size_t shard, struct answer *out)
{
  static char keys[K_MAX][2 * KEY_BYTES];
  static struct hit hits[K_MAX];
  static double scores[K_MAX];
  static const struct position watermark = { 1, 300000 };

  draw_scores(&b->options.dice, b->k, scores);
  for (size_t i = 0; i < b->k; i++) {
    snprintf(keys[i], sizeof keys[i], "item%04zu%012zu", shard, i);
    hits[i] = (struct hit){ .key = span_of(keys[i], KEY_BYTES), .score = (float)scores[i] };
    b->scores[b->n_scores++] = scores[i];
  }
  *out = (struct answer){
    .id = span_of_str("0123456789ab"),
    .space = span_of_str("books"),
    .generation = 1,
    .model = "0123456789abcdef",
    .hits = hits,
    .n_hits = b->k,
    .receipt = { .is_exact = true, .has_bound = true, .bound = hits[b->k - 1].score },
    .watermark = &watermark,
    .n_watermark = 1,
    .counts = { .items = SHARD_ITEMS,
                .scored = 1000,
                .candidates = 2000,
                .has_admitted = true,
                .admitted = SHARD_ITEMS },
  };
}

static void make_parts(struct bench *b)
{
  struct answer answer;

  region_reset(&b->made);
  b->n_scores = 0;
  for (size_t shard = 0; shard < b->n_shards; shard++) {
    struct partial partial = { .shard = (uint32_t)shard, .n_shards = (uint32_t)b->n_shards, .k = (uint32_t)b->k,
                               .model = span_of_str("0123456789abcdef"), .asked_unix_ms = 1700000000000 };
    struct span head, encoded;
    make_answer(b, shard, &answer);
    bench_check(wire_encode_partial(&partial, &b->made, &head));
    bench_check(wire_encode_answer(&answer, WIRE_PROTOBUF, &b->made, &encoded));
    bench_check(wire_complete_partial(head, encoded, &b->made, &b->values[shard]));
  }
}

/* Take the parts as the merge thread does, and make the answer. */
static void join(struct bench *b)
{
  AUTO(open_join_close) struct open_join *ready = NULL;
  enum open_joins_added added;

  for (size_t shard = 0; shard < b->n_shards; shard++) {
    struct partial partial;
    region_reset(&b->scratch);
    bench_check(wire_decode_partial(b->values[shard], &b->scratch, &partial));
    struct open_joins_part part = { span_of_str("sluice.queries/1/12345/1700000000000"), b->values[shard], 1, 0,
                                    &partial };
    bench_check(open_joins_add(b->joins, &part, 0, &added));
  }
  ready = open_joins_take_ready(b->joins);
  if (!ready)
    bench_fail("%zu parts are not complete", b->n_shards);
  else
    bench_check(merge_batch_add(&b->batch, ready));
}

static void verify(struct bench *b)
{
  struct answer answer;

  region_reset(&b->scratch);
  bench_check(wire_decode_answer(b->batch.replies[0].value, &b->scratch, &answer));
  qsort(b->scores, b->n_scores, sizeof *b->scores, compare_falling);
  if (answer.n_hits != b->k)
    bench_fail("%zu hits of %zu", answer.n_hits, b->k);
  else if (answer.hits[0].score != (float)b->scores[0] || answer.hits[b->k - 1].score != (float)b->scores[b->k - 1])
    bench_fail("the hits are not the best: from %g to %g", answer.hits[0].score, answer.hits[b->k - 1].score);
  if (answer.counts.items != b->n_shards * SHARD_ITEMS)
    bench_fail("the parts of %zu shards have %llu items", b->n_shards, (unsigned long long)answer.counts.items);
  for (size_t i = 1; i < answer.n_hits; i++) {
    if (answer.hits[i].score > answer.hits[i - 1].score)
      bench_fail("hit %zu is above the one before it", i);
  }
}

static struct bench_row measure(struct bench *b, size_t k, size_t n_shards)
{
  double end = bench_wall_ms() + b->options.seconds * 1e3;
  size_t n = 0;

  b->k = k;
  b->n_shards = n_shards;
  make_parts(b);
  join(b); /* does not count: memory is taken */
  verify(b);
  merge_batch_clear(&b->batch);
  for (; n < RUNS_MAX && (n == 0 || bench_wall_ms() < end); n++) {
    double wall = bench_wall_ms(), cpu = bench_cpu_ms();
    join(b);
    b->cpu_ms[n] = bench_cpu_ms() - cpu;
    b->wall_ms[n] = bench_wall_ms() - wall;
    merge_batch_clear(&b->batch);
  }
  double cpu_ms = bench_quantile(b->cpu_ms, n, 0.5);
  return (struct bench_row){
    .method = "join",
    .items = k * n_shards,
    .k = k,
    .batch = n_shards,
    .threads = 1,
    .n_runs = n,
    .median_ms = bench_quantile(b->wall_ms, n, 0.5),
    .p95_ms = bench_quantile(b->wall_ms, n, 0.95),
    .cpu_ms = cpu_ms,
    .cpu_p95_ms = bench_quantile(b->cpu_ms, n, 0.95),
    .ns_per_item = cpu_ms * 1e6 / (double)(k * n_shards),
  };
}

static void measure_all(struct bench *b)
{
  static const size_t ks[] = { 10, 100, K_MAX }, shards[] = { 2, 4, SHARDS_MAX };
  struct bench_row rows[9];
  size_t n = 0;

  for (size_t i = 0; i < 3; i++)
    for (size_t j = 0; j < 3; j++)
      rows[n++] = measure(b, ks[i], shards[j]);
  report_rows(&b->options, rows, n);
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = { .workload = "merge", .seconds = 2 };
  static struct bench b;

  bench_begin(argc, argv, &defaults, &b.options);
  b.config.query.answer_topic = "answers";
  b.config.isa = N_ISAS;
  struct merge_batch_context context = { &b.config, &b.counters, &b.merge_counters, NULL, NULL };
  bench_check(merge_batch_init(&context, &b.batch));
  bench_check(open_joins_open(1 << 30, 1000000000, &b.joins));
  report_begin(&b.options, "A merge: parts decoded, joined and encoded as one answer; batch: parts, items: their hits");
  measure_all(&b);
  merge_batch_fini(&b.batch);
  open_joins_close(&b.joins);
  region_fini(&b.made);
  region_fini(&b.scratch);
  return bench_end(&b.options);
}
