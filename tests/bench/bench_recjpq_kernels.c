/* RecJPQ searches on a catalogue like that of a trained model, each method beside a plain scan over f32 sub-item
 * scores, and the cost of keeping the columns. Every method's answers are compared with the plain scan's.
 *
 * The instance ("synth-tmall"): four fifths of the items have independent uniform codes, one fifth lies in 2,000
 * clusters of near-equal codes; a query's sub-item scores are a_m (0.8 smooth + 0.6 t5), a_m lognormal.
 * Usage: bench_recjpq_kernels [ITEMS [QUERIES [K [SIGMA]]]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "engine/method.h"
#include "engine/recjpq_columns.h"
#include "tests/support/dice.h"

enum { SPLITS = 8, SUBITEMS = 256, CLUSTERS = 2000, PASSES = 3 };

struct bench {
  struct dice dice;
  size_t n_items, n_queries, k;
  double sigma; /* of the lognormal */
  uint8_t *codes;
  float *scores; /* [n_queries][SPLITS][PQ_SUBITEMS] */
  uint8_t *has_part;
  struct recjpq_model model;
  struct columns *columns;
  const struct kernels *kernels;
  struct region region;
  struct topk_entry *wanted;       /* [n_queries][k] */
  double *scalar_ms, *ms, *ratios; /* [n_queries] */
};

static void check(err_code_t code)
{
  if (code != ERR_OK) {
    fprintf(stderr, "%s\n", err_message());
    exit(1);
  }
}

static double now_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* Drawing -------------------- */

static double draw_normal(struct dice *d)
{
  double u = ((double)(dice_u64(d) >> 11) + 0.5) * 0x1p-53, v = (double)(dice_u64(d) >> 11) * 0x1p-53;

  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double draw_t5(struct dice *d)
{
  double sum = 0;

  for (int i = 0; i < 5; i++) {
    double x = draw_normal(d);
    sum += x * x;
  }
  return draw_normal(d) / sqrt(sum / 5);
}

static void draw_codes(struct bench *b)
{
  static uint8_t centers[CLUSTERS][SPLITS];

  for (size_t i = 0; i < CLUSTERS * SPLITS; i++)
    centers[i / SPLITS][i % SPLITS] = (uint8_t)dice_below(&b->dice, SUBITEMS);
  for (size_t i = 0; i < b->n_items; i++) {
    const uint8_t *center = dice_below(&b->dice, 5) == 0 ? centers[dice_below(&b->dice, CLUSTERS)] : NULL;
    for (size_t m = 0; m < SPLITS; m++)
      b->codes[i * SPLITS + m] = (uint8_t)(center ? center[m] + dice_below(&b->dice, 5) - 2 : dice_u64(&b->dice));
  }
}

/* A smooth curve over the sub-items of unit variance: a few waves. */
static void draw_curve(struct dice *d, double *out)
{
  double phases[6], weights[6], size = 0;

  for (int w = 0; w < 6; w++) {
    phases[w] = 6.283185307179586 * (double)dice_float(d, 1);
    weights[w] = draw_normal(d);
    size += weights[w] * weights[w] / 2;
  }
  for (int i = 0; i < SUBITEMS; i++) {
    out[i] = 0;
    for (int w = 0; w < 6; w++)
      out[i] += weights[w] * cos(3.141592653589793 * (w + 1) * i / SUBITEMS + phases[w]) / sqrt(size);
  }
}

static void draw_scores(struct bench *b, float *scores)
{
  double curve[SUBITEMS];

  for (size_t m = 0; m < SPLITS; m++) {
    double a = exp(b->sigma * draw_normal(&b->dice));
    draw_curve(&b->dice, curve);
    for (size_t i = 0; i < SUBITEMS; i++)
      scores[m * PQ_SUBITEMS + i] = (float)(a * (0.8 * curve[i] + 0.6 * draw_t5(&b->dice)));
  }
}

/* Searches -------------------- */

static int by_slot(const void *context, uint32_t a, uint32_t b)
{
  (void)context;
  return (a > b) - (a < b);
}

static void scan_plainly(struct bench *b, const float *scores, struct topk *topk)
{
  float threshold = -INFINITY;

  for (size_t i = 0; i < b->n_items; i++) {
    float score = recjpq_score(scores, b->codes + i * SPLITS, SPLITS);
    if (score >= threshold) {
      topk_push(topk, score, (uint32_t)i);
      threshold = topk_threshold(topk);
    }
  }
  topk_finish(topk);
}

static double run_scalar(struct bench *b, size_t q)
{
  struct topk topk;
  double start = now_ns();

  topk_init(&topk, b->wanted + q * b->k, b->k, by_slot, NULL);
  scan_plainly(b, b->scores + q * SPLITS * PQ_SUBITEMS, &topk);
  return (now_ns() - start) / 1e6;
}

static double search_once(struct bench *b, const struct method *method, size_t q, struct search_result *result,
                          struct topk_entry *heap)
{
  struct recjpq_query query = { NULL, b->scores + q * SPLITS * PQ_SUBITEMS };
  struct search_batch batch = { b->kernels, method, &query, 1, result, b->n_items, b->n_items, &b->region };

  region_reset(&b->region);
  *result = (struct search_result){ .admit = { b->has_part, NULL, 0 } };
  topk_init(&result->topk, heap, b->k, by_slot, NULL);
  double start = now_ns();
  check(recjpq_columns_cpu.search(b->columns, &batch));
  double ms = (now_ns() - start) / 1e6;
  topk_finish(&result->topk);
  return ms;
}

static double quantile(double *values, size_t n, size_t percent)
{
  qsort(values, n, sizeof *values, compare_doubles);
  return values[n * percent / 100];
}

/* Each query is timed beside the plain scan for it, since the machine's pace changes: the ratio is the median of the
 * queries' ratios. */
static void run_method(struct bench *b, const char *text, enum isa isa)
{
  struct method method;
  struct topk_entry *heap;
  double scored = 0, passed = 0, n = (double)b->n_queries;

  check(method_parse(span_of_str(text), &method));
  check(kernels_get(isa, &b->kernels));
  check(mem_array(b->k, sizeof *heap, &heap));
  for (size_t q = 0; q < b->n_queries; q++) {
    struct search_result result;
    b->ms[q] = INFINITY;
    b->scalar_ms[q] = run_scalar(b, q);
    for (int pass = 0; pass < PASSES; pass++)
      b->ms[q] = fmin(b->ms[q], search_once(b, &method, q, &result, heap));
    b->ratios[q] = b->scalar_ms[q] / b->ms[q];
    scored += (double)result.counts.scored;
    passed += (double)result.counts.candidates;
    if (result.topk.n != b->k || memcmp(heap, b->wanted + q * b->k, b->k * sizeof *heap) != 0) {
      printf("%s: query %zu is wrong\n", text, q);
      exit(1);
    }
  }
  double median = quantile(b->ms, b->n_queries, 50), p95 = quantile(b->ms, b->n_queries, 95);
  double scalar = quantile(b->scalar_ms, b->n_queries, 50), ratio = quantile(b->ratios, b->n_queries, 50);
  printf("%-10s %-10s median %8.3f ms  p95 %8.3f  max %8.3f  scalar %7.3f  ratio %6.1f  %8.0f scored %6.0f passed\n", text,
         b->kernels->name, median, p95, b->ms[b->n_queries - 1], scalar, ratio, scored / n, passed / n);
  fflush(stdout);
  mem_free(&heap);
}

/* Writes -------------------- */

static void report_writes(const char *what, size_t n, double start)
{
  printf("%-22s %8.0f ns an item and arena\n", what, (now_ns() - start) / (double)n);
}

/* Insert all; then delete some as the arena does, the last item moving into the hole; change some; leave all as drawn.
 */
static void run_writes(struct bench *b)
{
  const struct columns_ops *ops = &recjpq_columns_cpu;
  size_t n = b->n_items, n_few = n / 10;
  uint8_t codes[SPLITS];
  double start = now_ns();

  for (size_t i = 0; i < n; i++)
    check(ops->put(b->columns, (uint32_t)i, true, b->codes + i * SPLITS));
  report_writes("insert", n, start);
  const struct cells *cells = &((struct recjpq_columns *)b->columns)->cells;
  printf("bytes an item: %.1f, of which cells %.1f and places %zu; said %zu\n",
         2 * SPLITS + (double)cells_bytes(cells) / (double)n + (double)(cells->n_pairs * sizeof *cells->places),
         (double)cells_bytes(cells) / (double)n, cells->n_pairs * sizeof *cells->places,
         ops->bytes_per_item(&b->model));
  start = now_ns();
  for (size_t i = 0; i < n_few; i++) {
    uint32_t slot = (uint32_t)dice_below(&b->dice, n - i - 1);
    ops->drop(b->columns, slot);
    ops->move(b->columns, (uint32_t)(n - i - 1), slot);
  }
  report_writes("delete and move", n_few, start);
  start = now_ns();
  for (size_t i = 0; i < n_few; i++) {
    uint32_t slot = (uint32_t)dice_below(&b->dice, n - n_few);
    memcpy(codes, b->codes + dice_below(&b->dice, n) * SPLITS, SPLITS);
    check(ops->put(b->columns, slot, false, codes));
  }
  report_writes("change", n_few, start);
  for (size_t i = 0; i < n; i++)
    check(ops->put(b->columns, (uint32_t)i, i >= n - n_few, b->codes + i * SPLITS));
}

static void open_bench(struct bench *b)
{
  b->model = (struct recjpq_model){ SPLITS, SUBITEMS, 1, NULL };
  check(mem_array(b->n_items, SPLITS, &b->codes));
  check(mem_array(b->n_queries, SPLITS * PQ_SUBITEMS * sizeof *b->scores, &b->scores));
  check(mem_array(b->n_items, 1, &b->has_part));
  check(mem_array(b->n_queries, b->k * sizeof *b->wanted, &b->wanted));
  check(mem_array(b->n_queries, sizeof *b->ms, &b->ms));
  check(mem_array(b->n_queries, sizeof *b->scalar_ms, &b->scalar_ms));
  check(mem_array(b->n_queries, sizeof *b->ratios, &b->ratios));
  memset(b->has_part, 1, b->n_items);
  draw_codes(b);
  for (size_t q = 0; q < b->n_queries; q++)
    draw_scores(b, b->scores + q * SPLITS * PQ_SUBITEMS);
  check(recjpq_columns_cpu.open(&b->model, b->n_items, &b->columns));
}

int main(int argc, char **argv)
{
  struct bench b = { .n_items = 2194464, .n_queries = 100, .k = 10, .sigma = 0.6 };

  b.n_items = argc > 1 ? strtoul(argv[1], NULL, 10) : b.n_items;
  b.n_queries = argc > 2 ? strtoul(argv[2], NULL, 10) : b.n_queries;
  b.k = argc > 3 ? strtoul(argv[3], NULL, 10) : b.k;
  b.sigma = argc > 4 ? strtod(argv[4], NULL) : b.sigma;
  if (b.n_items < 100 || b.n_queries < 1 || b.k < 1) {
    fprintf(stderr, "usage: bench_recjpq_kernels [ITEMS [QUERIES [K [SIGMA]]]]\n");
    return 2;
  }
  b.dice.state = dice_seed();
  open_bench(&b);
  run_writes(&b);
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    if (isa == ISA_AVX512_VNNI && isa < isa_detect())
      continue;
    run_method(&b, "exact", isa);
    run_method(&b, "pqtopk", isa);
  }
  run_method(&b, "prune(8)", isa_detect());
  run_method(&b, "prune(1)", isa_detect());
  return 0;
}
