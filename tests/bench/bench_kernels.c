/* SPDX-License-Identifier: Apache-2.0 */
/* Times every kernel at every level of this machine, on fresh random inputs. It prints the median CPU nanoseconds per
 * item or pair, and the ratio to the reference. For kernels that mostly do fused multiply-adds it also prints their
 * share of the level's peak rate. Other load on the machine slows both, so the peak is measured beside each run, and
 * the share is the median over the rounds. Usage: bench_kernels [ROUNDS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "kernels/kernels.h"
#include "tests/bench/bench_machine.h"
#include "tests/support/dice.h"

enum { MAX_ROUNDS = 1001 };

struct bench {
  struct dice dice;
  size_t rounds;
};

struct times {
  double ns;    /* a unit */
  double share; /* of the peak */
};

/* One kernel: fill() draws new inputs, run() is timed. */
struct subject {
  const char *name;
  size_t n_units;   /* items or pairs per run */
  double unit_fmas; /* 0: not mostly multiply-adds */
  void (*fill)(struct dice *dice);
  void (*run)(const struct kernels *kernels);
};

static void check(err_code_t code)
{
  if (code != ERR_OK) {
    fprintf(stderr, "%s\n", err_message());
    exit(1);
  }
}

/* CPU time of this thread: without other threads on the same core, but slowed by those on its hyper-thread sibling. */
static double now_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static float *floats_new(size_t n)
{
  float *p;

  check(mem_array(n, sizeof *p, &p));
  return p;
}

/* mol_score and transpose, in the shape of the Books model -------------------- */

enum { BOOKS_Q = 8, BOOKS_X = 8, BOOKS_DIM = 32, BOOKS_L = 64, BOOKS_HIDDEN = 128, BOOKS_BLOCKS = 32 };
enum { ITEM_FLOATS = BOOKS_X * BOOKS_DIM };

static const struct mol_shape books = { BOOKS_Q, BOOKS_X, BOOKS_DIM, BOOKS_HIDDEN, 20.0f };

static struct {
  float *w1, *b1, *w2, *b2, *query, *query_gate, *items, *item_gates, *scratch, *phi, *lower;
  struct mol_reduced_gate *reduced_gate;
} mol;

static void mol_open(void)
{
  mol.w1 = floats_new(BOOKS_L * BOOKS_HIDDEN);
  mol.b1 = floats_new(BOOKS_HIDDEN);
  mol.w2 = floats_new(BOOKS_L * BOOKS_HIDDEN);
  mol.b2 = floats_new(BOOKS_L);
  mol.query = floats_new(BOOKS_Q * BOOKS_DIM);
  mol.query_gate = floats_new(BOOKS_L);
  mol.items = floats_new((size_t)BOOKS_BLOCKS * ITEM_FLOATS * MOL_LANES);
  mol.item_gates = floats_new((size_t)BOOKS_BLOCKS * BOOKS_L * MOL_LANES);
  mol.scratch = floats_new(mol_bounds_scratch_floats(&books));
  mol.phi = floats_new(BOOKS_BLOCKS * MOL_LANES);
  mol.lower = floats_new(BOOKS_BLOCKS * MOL_LANES);
}

static void mol_fill(struct dice *dice)
{
  dice_fill(dice, mol.w1, BOOKS_L * BOOKS_HIDDEN, 0.1f);
  dice_fill(dice, mol.b1, BOOKS_HIDDEN, 0.5f);
  dice_fill(dice, mol.w2, BOOKS_L * BOOKS_HIDDEN, 0.1f);
  dice_fill(dice, mol.b2, BOOKS_L, 0.5f);
  dice_fill(dice, mol.query, BOOKS_Q * BOOKS_DIM, 0.3f);
  dice_fill(dice, mol.query_gate, BOOKS_L, 2.0f);
  dice_fill(dice, mol.items, (size_t)BOOKS_BLOCKS * ITEM_FLOATS * MOL_LANES, 0.3f);
  dice_fill(dice, mol.item_gates, (size_t)BOOKS_BLOCKS * BOOKS_L * MOL_LANES, 2.0f);
  struct mol_gate gate = { mol.w1, mol.b1, mol.w2, mol.b2 };
  mol_reduced_gate_close(&mol.reduced_gate);
  if (mol_reduced_gate_open(&books, &gate, &mol.reduced_gate) != ERR_OK)
    exit(1);
}

static void mol_run(const struct kernels *kernels)
{
  struct mol_gate gate = { mol.w1, mol.b1, mol.w2, mol.b2 };

  for (size_t b = 0; b < BOOKS_BLOCKS; b++)
    kernels->mol_score(&books, &gate, mol.query, mol.query_gate, mol.items + b * ITEM_FLOATS * MOL_LANES,
                       mol.item_gates + b * BOOKS_L * MOL_LANES, mol.scratch, NULL, mol.phi + b * MOL_LANES);
}

/* Levels without mol_bounds time mol_score in its place. */
static void mol_bounds_run(const struct kernels *kernels)
{
  struct mol_gate gate = { mol.w1, mol.b1, mol.w2, mol.b2 };

  if (!kernels->mol_bounds) {
    mol_run(kernels);
    return;
  }
  for (size_t b = 0; b < BOOKS_BLOCKS; b++)
    kernels->mol_bounds(&books, &gate, mol.reduced_gate, mol.query, mol.query_gate,
                        mol.items + b * ITEM_FLOATS * MOL_LANES, mol.item_gates + b * BOOKS_L * MOL_LANES, mol.scratch,
                        NULL, mol.lower + b * MOL_LANES, mol.phi + b * MOL_LANES);
}

static uint32_t screen_items[BOOKS_X * BOOKS_DIM / 2 * MOL_LANES] __attribute__((aligned(64)));
static int16_t screen_numbers[3 * BOOKS_Q * BOOKS_DIM] __attribute__((aligned(64)));
static uint32_t screen_logits[(BOOKS_L / 2 + 1) * MOL_LANES], screen_rows[(BOOKS_L / 2 + 1) * SCREEN_LANES];
static float screen_gates[BOOKS_L * SCREEN_LANES] __attribute__((aligned(64)));

/* Levels without mol_screen time mol_score in its place. All items have a large logit; about none passes. */
static void mol_screen_run(const struct kernels *kernels)
{
  struct mol_screen_query query;

  if (!kernels->mol_screen) {
    mol_run(kernels);
    return;
  }
  if (mol_screen_query_numbers(&books) > sizeof screen_numbers / sizeof screen_numbers[0] ||
      mol_screen_words(&books) > sizeof screen_items / sizeof screen_items[0] / MOL_LANES ||
      mol_screen_logit_rows(&books) > sizeof screen_logits / sizeof screen_logits[0] / MOL_LANES) {
    fprintf(stderr, "mol_screen: the benchmark has too little memory\n");
    exit(1);
  }
  mol_screen_prepare(&books, mol.reduced_gate, mol.query, mol.query_gate, screen_numbers, &query);
  kernels->mol_screen_items(&books, mol.items, screen_items);
  kernels->mol_screen_begin();
  for (size_t b = 0; b < BOOKS_BLOCKS; b++) {
    kernels->mol_screen_logits(&books, mol.reduced_gate, &query, screen_items, 18.0f, screen_logits);
    kernels->mol_screen_append(screen_logits, mol_screen_logit_rows(&books), UINT32_MAX, screen_rows, 0);
    kernels->mol_screen_append((const uint32_t *)(const void *)(mol.item_gates + b * BOOKS_L * MOL_LANES), BOOKS_L,
                               UINT32_MAX, (uint32_t *)(void *)screen_gates, 0);
    kernels->mol_screen(&books, mol.reduced_gate, &query,
                        &(struct mol_screen_rows){ screen_rows, screen_gates, SCREEN_LANES }, 18.0f, mol.scratch);
  }
  kernels->mol_screen_end();
}

static float *transposed;

static void transpose_run(const struct kernels *kernels)
{
  const float *rows[MOL_LANES];

  for (size_t b = 0; b < BOOKS_BLOCKS; b++) {
    for (size_t i = 0; i < MOL_LANES; i++)
      rows[i] = mol.items + (b * MOL_LANES + i) * ITEM_FLOATS;
    kernels->transpose(rows, MOL_LANES, ITEM_FLOATS, transposed);
  }
}

/* linear and silu: the item network of the Books model -------------------- */

enum { LINEAR_ITEMS = 2000, LINEAR_IN = 64, LINEAR_OUT = 256 };

static float *linear_x, *linear_w, *linear_bias, *linear_y;

static void linear_fill(struct dice *dice)
{
  dice_fill(dice, linear_x, LINEAR_ITEMS * LINEAR_IN, 1.0f);
  dice_fill(dice, linear_w, LINEAR_IN * LINEAR_OUT, 0.1f);
  dice_fill(dice, linear_bias, LINEAR_OUT, 1.0f);
  dice_fill(dice, linear_y, LINEAR_ITEMS * LINEAR_OUT, 8.0f);
}

static void linear_run(const struct kernels *kernels)
{
  kernels->linear(linear_x, LINEAR_ITEMS, LINEAR_IN, linear_w, linear_bias, LINEAR_OUT, linear_y);
}

static void gelu_run(const struct kernels *kernels)
{
  kernels->gelu(linear_y, LINEAR_ITEMS * LINEAR_OUT);
}

static void silu_run(const struct kernels *kernels)
{
  kernels->silu(linear_y, LINEAR_ITEMS * LINEAR_OUT);
}

/* Scans -------------------- */

enum { SCAN_ITEMS = 64000, DOT_DIM = 32, PQ_SPLITS = 8 };

static float *dot_items, *dot_query, *scan_scores;
static uint8_t *pq_codes, *pq_tables;
static uint32_t *filter_indices;

static void dot_fill(struct dice *dice)
{
  dice_fill(dice, dot_items, (size_t)SCAN_ITEMS * DOT_DIM, 1.0f);
  dice_fill(dice, dot_query, DOT_DIM, 1.0f);
}

static void dot_run(const struct kernels *kernels)
{
  kernels->dot_blocks(dot_query, DOT_DIM, dot_items, SCAN_ITEMS / DOT_BLOCK_ITEMS, scan_scores);
}

static void pq_fill(struct dice *dice)
{
  for (size_t i = 0; i < PQ_SPLITS * PQ_SUBITEMS; i++)
    pq_tables[i] = (uint8_t)(20 + dice_below(dice, 236)); /* about one item in a hundred thousand passes */
  for (size_t i = 0; i < (size_t)SCAN_ITEMS * PQ_SPLITS; i++)
    pq_codes[i] = (uint8_t)dice_u64(dice);
}

static void pq_run(const struct kernels *kernels)
{
  enum { BLOCK = 256 };
  static const uint8_t rows[PQ_SPLITS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  const uint8_t *tables[PQ_SPLITS];

  for (size_t t = 0; t < PQ_SPLITS; t++)
    tables[t] = pq_tables + t * PQ_SUBITEMS;
  for (size_t i = 0; i < SCAN_ITEMS; i += BLOCK)
    kernels->pq_filter(tables, rows, PQ_SPLITS, pq_codes + i * PQ_SPLITS, BLOCK, BLOCK, 0, 254, filter_indices);
}

static void pq_scan_run(const struct kernels *kernels)
{
  const uint8_t *tables[PQ_SPLITS], *rows[PQ_SPLITS];

  for (size_t t = 0; t < PQ_SPLITS; t++)
    tables[t] = pq_tables + t * PQ_SUBITEMS;
  for (size_t i = 0; i + PQ_BLOCK_ITEMS <= SCAN_ITEMS; i += PQ_BLOCK_ITEMS) {
    for (size_t t = 0; t < PQ_SPLITS; t++)
      rows[t] = pq_codes + i * PQ_SPLITS + t * PQ_BLOCK_ITEMS;
    kernels->pq_scan(tables, rows, PQ_SPLITS, PQ_BLOCK_ITEMS, 254, NULL, NULL, filter_indices);
  }
}

static void filter_fill(struct dice *dice)
{
  dice_fill(dice, scan_scores, SCAN_ITEMS, 1.0f);
}

/* One in a hundred passes. */
static void filter_rare_run(const struct kernels *kernels)
{
  kernels->filter_ge(scan_scores, SCAN_ITEMS, 0.98f, filter_indices);
}

static void filter_half_run(const struct kernels *kernels)
{
  kernels->filter_ge(scan_scores, SCAN_ITEMS, 0.0f, filter_indices);
}

/* Scans of component sketches, in the shape of the Books model; about one list in 2000 items has a hit
 * -------------------- */

/* A chunk of the engine's size, which stays in cache. */
enum {
  SKETCH_BLOCKS = 16,
  SKETCH_RUNS = 40,
  SKETCH_ITEMS = SKETCH_BLOCKS * SKETCH_BLOCK_ITEMS,
  SKETCH_DIM = BOOKS_DIM
};

static uint8_t *sketch_blocks;
static int16_t *average_blocks, average_rows[BOOKS_DIM * 32];
static int8_t sketch_query[BOOKS_Q * SKETCH_DIM];
static struct scan_list sketch_lists[BOOKS_L];
static int32_t sketch_starts[BOOKS_Q];
static uint16_t sketch_masks[SKETCH_BLOCKS];

static void sketch_fill(struct dice *dice)
{
  int32_t sums[BOOKS_Q] = { 0 };

  for (size_t i = 0; i < (size_t)SKETCH_ITEMS * BOOKS_X * SKETCH_DIM; i++)
    sketch_blocks[i] = (uint8_t)(128 + (int)dice_float(dice, 40.0f));
  for (size_t i = 0; i < sizeof sketch_query; i++) {
    sketch_query[i] = (int8_t)dice_float(dice, 127.0f);
    sums[i / 4 % BOOKS_Q] += sketch_query[i];
  }
  for (size_t p = 0; p < BOOKS_L; p++) {
    sketch_lists[p].start = -128 * sums[p / BOOKS_X] - 32000;
    sketch_starts[p / BOOKS_X] = sketch_lists[p].start;
  }
  for (size_t i = 0; i < (size_t)SKETCH_ITEMS * SKETCH_DIM; i++)
    average_blocks[i] = (int16_t)dice_float(dice, 3000.0f);
  for (size_t i = 0; i < sizeof average_rows / sizeof average_rows[0]; i++)
    average_rows[i] = (int16_t)dice_float(dice, 3000.0f);
}

static const struct sketch_rows sketch_rows = { BOOKS_Q, SKETCH_DIM / 4, sketch_query };

static void lists_run(const struct kernels *kernels)
{
  for (size_t i = 0; i < SKETCH_RUNS; i++) {
    for (size_t p = 0; p < BOOKS_L; p++)
      sketch_lists[p].n = 0;
    kernels->mol_lists(&sketch_rows, BOOKS_X, sketch_blocks, BOOKS_X * SKETCH_DIM * SKETCH_BLOCK_ITEMS, SKETCH_BLOCKS,
                       0, sketch_lists);
  }
}

static void any_run(const struct kernels *kernels)
{
  for (size_t i = 0; i < SKETCH_RUNS; i++)
    kernels->mol_any(&sketch_rows, BOOKS_X, sketch_blocks, SKETCH_BLOCKS, sketch_starts, sketch_masks);
}

static void average_run(const struct kernels *kernels)
{
  for (size_t i = 0; i < SKETCH_RUNS; i++) {
    for (size_t q = 0; q < 32; q++) {
      sketch_lists[q].n = 0;
      sketch_lists[q].start = -80000000;
    }
    kernels->average_lists(average_rows, 32, SKETCH_DIM / 2, average_blocks, SKETCH_BLOCKS, 0, sketch_lists);
  }
}

/* Sketches of vectors -------------------- */

enum {
  VECTOR_ITEMS = 1024,
  VECTOR_BLOCKS = VECTOR_ITEMS / SKETCH_BLOCK_ITEMS,
  VECTOR_DIM = 128,
  ROW_DIM = 768,
  ROWS = 64,
  BATCH = 32
};

static uint8_t *sketch_bytes;
static int16_t sketch_numbers[BATCH][VECTOR_DIM];
static int32_t sketch_sums[BATCH][VECTOR_ITEMS + SKETCH_BLOCK_ITEMS]; /* not multiples of 4096 bytes apart */
static float sketch_scales[VECTOR_ITEMS], sketch_upper[VECTOR_ITEMS], *rows;
static double row_query[ROW_DIM], row_sums[ROWS], *matrix, matrix_sums[BATCH * ROW_DIM];

static void vector_fill(struct dice *dice)
{
  for (size_t i = 0; i < (size_t)VECTOR_ITEMS * VECTOR_DIM; i++)
    sketch_bytes[i] = (uint8_t)dice_u64(dice);
  for (size_t k = 0; k < BATCH * VECTOR_DIM; k++)
    sketch_numbers[k / VECTOR_DIM][k % VECTOR_DIM] = (int16_t)dice_float(dice, 30000.0f);
  dice_fill(dice, sketch_scales, VECTOR_ITEMS, 1.0f);
}

static void dot_i8_each_run(const struct kernels *kernels)
{
  for (size_t q = 0; q < BATCH; q++)
    kernels->dot_i8((const int16_t *const[]){ sketch_numbers[q] }, 1, VECTOR_DIM / SKETCH_GROUP, sketch_bytes,
                    VECTOR_BLOCKS, (int32_t *const[]){ sketch_sums[q] });
}

static void dot_i8_run(const struct kernels *kernels)
{
  const int16_t *queries[BATCH];
  int32_t *sums[BATCH];

  for (size_t q = 0; q < BATCH; q++) {
    queries[q] = sketch_numbers[q];
    sums[q] = sketch_sums[q];
  }
  kernels->dot_i8(queries, BATCH, VECTOR_DIM / SKETCH_GROUP, sketch_bytes, VECTOR_BLOCKS, sums);
}

static void bounds_run(const struct kernels *kernels)
{
  struct sketch_items items = { sketch_scales, sketch_scales, sketch_scales };
  struct sketch_weights weights = { 1e-6f, 1.0f, 1.0f, 1.0f, 0.0f };

  kernels->sketch_bounds(sketch_sums[0], &items, &weights, VECTOR_BLOCKS, sketch_upper);
}

static void rows_fill(struct dice *dice)
{
  dice_fill(dice, rows, ROWS * ROW_DIM, 1.0f);
  for (size_t k = 0; k < ROW_DIM; k++)
    row_query[k] = (double)dice_float(dice, 1.0f);
}

static void dot_f64_run(const struct kernels *kernels)
{
  for (size_t i = 0; i < ROWS; i++)
    row_sums[i] = kernels->dot_f64(row_query, rows + i * ROW_DIM, ROW_DIM);
}

/* A batch of queries times a square matrix, as they are rotated for bilinear. */
static void matrix_fill(struct dice *dice)
{
  rows_fill(dice);
  for (size_t i = 0; i < ROW_DIM * ROW_DIM; i++)
    matrix[i] = (double)dice_float(dice, 1.0f);
}

static void dot_f64_matrix_run(const struct kernels *kernels)
{
  for (size_t k = 0; k < ROW_DIM; k++)
    for (size_t i = 0; i < BATCH; i++)
      matrix_sums[i * ROW_DIM + k] = kernels->dot_f64(matrix + k * ROW_DIM, rows + i * ROW_DIM, ROW_DIM);
}

static void dots_f64_run(const struct kernels *kernels)
{
  const float *vectors[BATCH];

  for (size_t i = 0; i < BATCH; i++)
    vectors[i] = rows + i * ROW_DIM;
  kernels->dots_f64(matrix, ROW_DIM, vectors, BATCH, ROW_DIM, matrix_sums);
}

static void inputs_open(void)
{
  check(mem_array((size_t)SKETCH_ITEMS * BOOKS_X, SKETCH_DIM, &sketch_blocks));
  check(mem_array((size_t)SKETCH_ITEMS, SKETCH_DIM * sizeof *average_blocks, &average_blocks));
  for (size_t p = 0; p < BOOKS_L; p++)
    check(mem_array(SKETCH_ITEMS, sizeof *sketch_lists[p].entries, &sketch_lists[p].entries));
  mol_open();
  transposed = floats_new(ITEM_FLOATS * MOL_LANES);
  linear_x = floats_new(LINEAR_ITEMS * LINEAR_IN);
  linear_w = floats_new(LINEAR_IN * LINEAR_OUT);
  linear_bias = floats_new(LINEAR_OUT);
  linear_y = floats_new(LINEAR_ITEMS * LINEAR_OUT);
  dot_items = floats_new((size_t)SCAN_ITEMS * DOT_DIM);
  dot_query = floats_new(DOT_DIM);
  check(mem_array(PQ_SPLITS * PQ_SUBITEMS, 1, &pq_tables));
  scan_scores = floats_new(SCAN_ITEMS);
  rows = floats_new(ROWS * ROW_DIM);
  check(mem_array((size_t)ROW_DIM * ROW_DIM, sizeof *matrix, &matrix));
  check(mem_array((size_t)VECTOR_ITEMS * VECTOR_DIM + SKETCH_BLOCKS_PAD, sizeof *sketch_bytes, &sketch_bytes));
  check(mem_array((size_t)SCAN_ITEMS * PQ_SPLITS, sizeof *pq_codes, &pq_codes));
  check(mem_array(SCAN_ITEMS, sizeof *filter_indices, &filter_indices));
}

/* Timing -------------------- */

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
  qsort(values, n, sizeof values[0], compare_doubles);
  return values[n / 2];
}

static struct times time_subject(struct bench *b, const struct subject *s, enum isa isa, const struct kernels *kernels)
{
  double ns[MAX_ROUNDS], shares[MAX_ROUNDS];

  for (size_t i = 0; i < b->rounds; i++) {
    s->fill(&b->dice);
    double peak = s->unit_fmas > 0 && isa != ISA_REF ? machine_fma_once(isa) : INFINITY, start = now_ns();
    s->run(kernels);
    ns[i] = (now_ns() - start) / (double)s->n_units;
    shares[i] = s->unit_fmas / ns[i] / peak;
  }
  return (struct times){ median(ns, b->rounds), median(shares, b->rounds) };
}

static void report(struct bench *b, const struct subject *s)
{
  double ref_ns = 0;

  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    const struct kernels *kernels;
    check(kernels_get(isa, &kernels));
    struct times times = time_subject(b, s, isa, kernels);
    ref_ns = isa == ISA_REF ? times.ns : ref_ns;
    printf("%-20s %-7s %12.3f ns %9.1f x", s->name, kernels->name, times.ns, ref_ns / times.ns);
    if (times.share > 0)
      printf(" %6.1f %% of peak", 100 * times.share);
    printf("\n");
    fflush(stdout);
  }
}

int main(int argc, char **argv)
{
  static const struct subject subjects[] = {
    { "mol_score/pair", BOOKS_BLOCKS * MOL_LANES, 2 * BOOKS_L * BOOKS_HIDDEN + BOOKS_L * BOOKS_DIM, mol_fill, mol_run },
    { "mol_bounds/pair", BOOKS_BLOCKS * MOL_LANES, 0, mol_fill, mol_bounds_run },
    { "mol_screen/pair", BOOKS_BLOCKS * MOL_LANES, 0, mol_fill, mol_screen_run },
    { "mol_lists/item", SKETCH_ITEMS * SKETCH_RUNS, 0, sketch_fill, lists_run },
    { "mol_any/item", SKETCH_ITEMS * SKETCH_RUNS, 0, sketch_fill, any_run },
    { "average_lists/pair", SKETCH_ITEMS * SKETCH_RUNS * 32, 0, sketch_fill, average_run },
    { "transpose/item", BOOKS_BLOCKS * MOL_LANES, 0, mol_fill, transpose_run },
    { "linear 64x256/item", LINEAR_ITEMS, LINEAR_IN * LINEAR_OUT, linear_fill, linear_run },
    { "silu/float", LINEAR_ITEMS * LINEAR_OUT, 0, linear_fill, silu_run },
    { "gelu/float", LINEAR_ITEMS * LINEAR_OUT, 0, linear_fill, gelu_run },
    { "dot_blocks 32/item", SCAN_ITEMS, DOT_DIM, dot_fill, dot_run },
    { "pq_filter 8/item", SCAN_ITEMS, 0, pq_fill, pq_run },
    { "pq_scan 8/item", SCAN_ITEMS, 0, pq_fill, pq_scan_run },
    { "filter_ge 1 %/item", SCAN_ITEMS, 0, filter_fill, filter_rare_run },
    { "filter_ge 50 %/item", SCAN_ITEMS, 0, filter_fill, filter_half_run },
    { "dot_i8 one by one/pair", BATCH * VECTOR_ITEMS, 0, vector_fill, dot_i8_each_run },
    { "dot_i8 of 32/pair", BATCH * VECTOR_ITEMS, 0, vector_fill, dot_i8_run },
    { "sketch_bounds/item", VECTOR_ITEMS, 0, vector_fill, bounds_run },
    { "dot_f64 768/item", ROWS, 0, rows_fill, dot_f64_run },
    { "dot_f64 768/pair", ROW_DIM * BATCH, 0, matrix_fill, dot_f64_matrix_run },
    { "dots_f64 768/pair", ROW_DIM * BATCH, 0, matrix_fill, dots_f64_run },
  };
  struct bench b = { .rounds = 15 };
  long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 15;

  if (rounds < 1 || rounds > MAX_ROUNDS) {
    fprintf(stderr, "usage: bench_kernels [ROUNDS, 1 to %d]\n", MAX_ROUNDS);
    return 2;
  }
  b.rounds = (size_t)rounds;
  b.dice.state = dice_seed();
  inputs_open();
  for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++)
    printf("peak %-7s %6.1f G fused multiply-adds/s\n", isa_name(isa), machine_fma_peak(isa));
  for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
    report(&b, &subjects[i]);
  return 0;
}
