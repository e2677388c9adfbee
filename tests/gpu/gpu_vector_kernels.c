/* SPDX-License-Identifier: Apache-2.0 */
/* The vector kernels compared with sums computed here. Scores must be equal to the last bit. Bounds must hold for every
 * query and item, whatever the numbers, and must be tight for ordinary numbers.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cuda/vector_scan.h"
#include "kernels/cuda/vector_score.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { TILE = 64, QUERIES_MAX = 64 };

/* How numbers are drawn. */
enum draw {
  DRAW_GAUSS,
  DRAW_ALIKE,  /* all rounding errors have the same sign and are as large as the bound allows */
  DRAW_MIXED,  /* magnitudes from 10^-30 to 10^30 within a vector */
  DRAW_SIZES,  /* ... and from vector to vector */
  DRAW_TINY,   /* subnormal numbers */
  DRAW_HUGE,   /* near f32's largest number */
  DRAW_SPARSE, /* many zeros, and zero vectors */
  DRAW_SIGNS,  /* 1 and -1 */
  N_DRAWS
};

struct world {
  struct dice dice;
  size_t n;       /* numbers of an item's row, without its tail */
  size_t n_used;  /* numbers that have halves */
  size_t n_items; /* a multiple of TILE */
  float *rows;    /* [n_items][n + 1]; this and the following arrays are pinned */
  uint8_t *present;
  uint32_t *slots;
  double *q;     /* [QUERIES_MAX][n] */
  double *sigma; /* [n] */
  float *floors;
  struct device_stream *stream;
  struct device_rows device_rows;
  struct vector_halves items, queries;
  uint32_t *device_slots;
  double *device_q, *device_sigma;
  float *device_floors, *device_maxima;
  struct device_lists lists;
};

/* Allocate zeros: scans multiply whole tiles, with what absent items and the end of the last tile hold. */
static void *device_array(struct world *w, size_t n, size_t size)
{
  void *p;

  CHECK_OK(device_alloc(n, size, &p));
  CHECK_OK(device_fill(w->stream, p, 0, n * size));
  return p;
}

static void *host_array(size_t n, size_t size)
{
  void *p;

  CHECK_OK(device_alloc_host(n, size, &p));
  memset(p, 0, n * size);
  return p;
}

static void open_world(struct world *w, size_t n, size_t n_used, size_t n_items, uint64_t seed)
{
  size_t stride = vector_halves_stride(n_used);

  *w = (struct world){ .dice.state = seed, .n = n, .n_used = n_used, .n_items = n_items };
  CHECK_OK(device_stream_open(&w->stream));
  w->rows = host_array(n_items * (n + 1), sizeof *w->rows);
  w->present = host_array(n_items, 1);
  w->slots = host_array(n_items, sizeof *w->slots);
  w->q = host_array(QUERIES_MAX * n, sizeof *w->q);
  w->sigma = host_array(n, sizeof *w->sigma);
  w->floors = host_array(QUERIES_MAX, sizeof *w->floors);
  w->device_rows.row_bytes = (n + 1) * sizeof(float);
  w->device_rows.bytes = device_array(w, n_items, w->device_rows.row_bytes);
  w->device_rows.present = device_array(w, n_items, 1);
  w->items = (struct vector_halves){ stride, device_array(w, n_items * stride, sizeof(uint16_t)),
                                     device_array(w, n_items, sizeof(struct vector_sizes)) };
  w->queries = (struct vector_halves){ stride, device_array(w, QUERIES_MAX * stride, sizeof(uint16_t)),
                                       device_array(w, QUERIES_MAX, sizeof(struct vector_sizes)) };
  w->device_slots = device_array(w, n_items, sizeof *w->slots);
  w->device_q = device_array(w, QUERIES_MAX * n, sizeof *w->q);
  w->device_sigma = device_array(w, n, sizeof *w->sigma);
  w->device_floors = device_array(w, QUERIES_MAX, sizeof *w->floors);
  w->device_maxima = device_array(w, QUERIES_MAX * (n_items / TILE), sizeof *w->device_maxima);
  w->lists = (struct device_lists){ QUERIES_MAX, n_items, device_array(w, QUERIES_MAX, sizeof(uint32_t)),
                                    device_array(w, QUERIES_MAX * n_items, sizeof(uint32_t)),
                                    device_array(w, QUERIES_MAX * n_items, sizeof(float)) };
}

static void close_world(struct world *w)
{
  void *of_device[] = { w->device_rows.bytes, w->device_rows.present, w->items.numbers, w->items.sizes,
                        w->queries.numbers,   w->queries.sizes,       w->device_slots,  w->device_q,
                        w->device_sigma,      w->device_floors,       w->device_maxima, w->lists.n,
                        w->lists.slots,       w->lists.scores };
  void *of_host[] = { w->rows, w->present, w->slots, w->q, w->sigma, w->floors };

  for (size_t i = 0; i < sizeof of_device / sizeof of_device[0]; i++)
    device_free(&of_device[i]);
  for (size_t i = 0; i < sizeof of_host / sizeof of_host[0]; i++)
    device_free_host(&of_host[i]);
  device_stream_close(&w->stream);
}

static void copy_in(struct world *w, void *to, const void *from, size_t bytes)
{
  CHECK_OK(device_copy_in(w->stream, to, from, bytes));
  CHECK_OK(device_wait(w->stream));
}

static void copy_out(struct world *w, void *to, const void *from, size_t bytes)
{
  void *pinned = host_array(bytes, 1);

  CHECK_OK(device_copy_out(w->stream, pinned, from, bytes));
  CHECK_OK(device_wait(w->stream));
  memcpy(to, pinned, bytes);
  device_free_host(&pinned);
}

/* Numbers -------------------- */

static double gauss(struct dice *d)
{
  double u = ((double)(dice_u64(d) >> 11) + 0.5) * 0x1p-53, v = (double)(dice_u64(d) >> 11) * 0x1p-53;

  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double draw_number(struct dice *d, enum draw draw, double size)
{
  double x = gauss(d);

  switch (draw) {
  case DRAW_ALIKE:
    return 1 + 0x1.fffp-12; /* just below the middle between two halves */
  case DRAW_MIXED:
    return x * pow(10, (double)dice_float(d, 30.0f));
  case DRAW_SIZES:
    return x * size;
  case DRAW_TINY:
    return x * 1e-41;
  case DRAW_HUGE:
    return fabs(x) > 3 ? (double)FLT_MAX : x * 1e38;
  case DRAW_SPARSE:
    return dice_below(d, 3) ? 0 : x;
  case DRAW_SIGNS:
    return x < 0 ? -1 : 1;
  default:
    return x;
  }
}

static void draw_vector(struct world *w, enum draw draw, double *x)
{
  double size = pow(10, (double)dice_float(&w->dice, 30.0f));
  bool is_zero = draw == DRAW_SPARSE && dice_below(&w->dice, 4) == 0;

  for (size_t k = 0; k < w->n; k++) {
    x[k] = is_zero ? 0 : draw_number(&w->dice, draw, size);
    x[k] = fmin(fmax(x[k], -(double)FLT_MAX), (double)FLT_MAX);
  }
}

/* Return an item's tail, |diag(sigma)^(1/2) b| over the numbers without halves, slightly enlarged. */
static float tail_of(const struct world *w, const float *b)
{
  double sum = 0;

  for (size_t k = w->n_used; k < w->n; k++)
    sum += w->sigma[k] * ((double)b[k] * (double)b[k]);
  return (float)(sqrt(sum) * (1 + 1e-6));
}

/* Some numbers of queries are 0, as where a model's singular value is. */
static void draw_sigma(struct world *w)
{
  for (size_t k = 0; k < w->n; k++)
    w->sigma[k] = dice_below(&w->dice, 10) ? exp((double)dice_float(&w->dice, 6.0f)) : 0;
  copy_in(w, w->device_sigma, w->sigma, w->n * sizeof *w->sigma);
}

static void fill_items(struct world *w, enum draw draw)
{
  double *x = malloc(w->n * sizeof *x);

  for (size_t i = 0; i < w->n_items; i++) {
    float *row = w->rows + i * (w->n + 1);
    draw_vector(w, draw, x);
    for (size_t k = 0; k < w->n; k++)
      row[k] = (float)x[k];
    row[w->n] = tail_of(w, row);
    w->present[i] = dice_below(&w->dice, 10) != 0;
    w->slots[i] = (uint32_t)i;
  }
  free(x);
  copy_in(w, w->device_rows.bytes, w->rows, w->n_items * w->device_rows.row_bytes);
  copy_in(w, w->device_rows.present, w->present, w->n_items);
  copy_in(w, w->device_slots, w->slots, w->n_items * sizeof *w->slots);
  CHECK_OK(vector_derive_items(w->stream, &w->device_rows, w->n_used, w->n, w->device_slots, w->n_items, &w->items));
  CHECK_OK(device_wait(w->stream));
}

/* Upload n queries: the first n_distinct of w->q, repeated. */
static void upload_queries(struct world *w, size_t n_distinct, size_t n)
{
  for (size_t q = n_distinct; q < n; q++)
    memcpy(w->q + q * w->n, w->q + q % n_distinct * w->n, w->n * sizeof *w->q);
  copy_in(w, w->device_q, w->q, n * w->n * sizeof *w->q);
  CHECK_OK(vector_derive_queries(w->stream, w->device_q, w->device_sigma, n, w->n, w->n_used, &w->queries));
  CHECK_OK(device_wait(w->stream));
}

static void draw_queries(struct world *w, enum draw draw, size_t n)
{
  for (size_t q = 0; q < n; q++) {
    draw_vector(w, draw, w->q + q * w->n);
    double scale = draw == DRAW_HUGE && q % 2 ? 1e15 : 1; /* queries are in double */
    for (size_t k = 0; k < w->n; k++)
      w->q[q * w->n + k] *= k >= w->n_used && w->sigma[k] == 0 ? 0 : scale;
  }
}

/* dot_f64 as kernels.h defines it: number k goes to partial sum k % 32, then the sums are folded in halves. */
static float score_of(const struct world *w, const double *q, size_t item)
{
  const float *row = w->rows + item * (w->n + 1);
  double sums[32] = { 0 };

  for (size_t k = 0; k < (w->n + 31) / 32 * 32; k++)
    sums[k % 32] = fma(k < w->n ? q[k] : 0.0, k < w->n ? (double)row[k] : 0.0, sums[k % 32]);
  for (size_t half = 16; half > 0; half /= 2) {
    for (size_t j = 0; j < half; j++)
      sums[j] += sums[j + half];
  }
  return (float)sums[0];
}

static double norm_of_query(const struct world *w, const double *q)
{
  double sum = 0;

  for (size_t k = 0; k < w->n; k++)
    sum += q[k] * q[k];
  return sqrt(sum);
}

static double norm_of_item(const struct world *w, size_t item)
{
  double sum = 0;

  for (size_t k = 0; k < w->n; k++)
    sum += (double)w->rows[item * (w->n + 1) + k] * (double)w->rows[item * (w->n + 1) + k];
  return sqrt(sum);
}

/* Checks -------------------- */

static struct vector_scan_input input_of(const struct world *w, size_t n_queries)
{
  return (struct vector_scan_input){
    .present = w->device_rows.present, .items = w->items, .queries = w->queries, .n_queries = n_queries, .n_blocks = 3
  };
}

/* Check upper bounds. The same query is repeated n times, each time with a different item's score as its floor. That
 * item's upper bound must reach it. */
static void check_uppers_of(struct world *w, const double *q, size_t first, size_t offset, size_t n)
{
  struct vector_scan_input input = input_of(w, n);
  uint32_t *lengths = malloc(n * sizeof *lengths), *slots = malloc(n * w->n_items * sizeof *slots);
  float *uppers = malloc(n * w->n_items * sizeof *uppers);

  for (size_t i = 0; i < n; i++)
    w->floors[i] = score_of(w, q, first + offset + i);
  copy_in(w, w->device_floors, w->floors, n * sizeof *w->floors);
  CHECK_OK(lists_clear(w->stream, &w->lists));
  CHECK_OK(vector_scan_append(w->stream, &input, first, TILE, w->device_floors, &w->lists));
  copy_out(w, lengths, w->lists.n, n * sizeof *lengths);
  copy_out(w, slots, w->lists.slots, n * w->n_items * sizeof *slots);
  copy_out(w, uppers, w->lists.scores, n * w->n_items * sizeof *uppers);
  for (size_t i = 0; i < n; i++) {
    uint8_t is_in[TILE] = { 0 };
    for (size_t e = 0; e < lengths[i]; e++) {
      size_t slot = slots[i * w->n_items + e];
      CHECK(slot >= first && slot < first + TILE && w->present[slot] && !is_in[slot - first], "slot %zu", slot);
      is_in[slot - first] = 1;
      float upper = uppers[i * w->n_items + e], score = score_of(w, q, slot);
      CHECK(upper >= w->floors[i] || isnan(w->floors[i]), "slot %zu: %g", slot, (double)upper);
      CHECK(upper >= score || isnan(score), "slot %zu scores %g, above its bound %g", slot, (double)score,
            (double)upper);
    }
    CHECK(is_in[offset + i] == w->present[first + offset + i], "item %zu scores %g, above its bound",
          first + offset + i, (double)w->floors[i]);
  }
  free(lengths);
  free(slots);
  free(uppers);
}

static void check_uppers(struct world *w, enum draw draw, size_t n_queries)
{
  static const size_t sizes[] = { 64, 16, 8 }; /* batch sizes with different kernels */

  for (size_t i = 0; i < n_queries; i++) {
    size_t n = sizes[i % 3];
    draw_queries(w, draw, 1);
    upload_queries(w, 1, n);
    for (size_t first = 0; first < w->n_items; first += TILE) {
      for (size_t offset = 0; offset < TILE; offset += n)
        check_uppers_of(w, w->q, first, offset, n);
    }
  }
}

/* Check lower bounds. Each tile has one present item, so the tile's maximum is that item's lower bound. */
static void check_lowers(struct world *w, enum draw draw, size_t n_queries)
{
  struct vector_scan_input input = input_of(w, n_queries);
  size_t n_tiles = w->n_items / TILE;
  float *maxima = malloc(n_queries * n_tiles * sizeof *maxima);
  uint8_t *present = host_array(w->n_items, 1);

  draw_queries(w, draw, n_queries);
  upload_queries(w, n_queries, n_queries);
  for (size_t offset = 0; offset < TILE; offset += 1 + dice_below(&w->dice, 8)) {
    for (size_t i = 0; i < w->n_items; i++)
      present[i] = i % TILE == offset && w->present[i];
    copy_in(w, w->device_rows.present, present, w->n_items);
    CHECK_OK(vector_scan_maxima(w->stream, &input, w->n_items, 1, n_tiles, w->device_maxima));
    copy_out(w, maxima, w->device_maxima, n_queries * n_tiles * sizeof *maxima);
    for (size_t q = 0; q < n_queries; q++) {
      for (size_t t = 0; t < n_tiles; t++) {
        size_t item = t * TILE + offset;
        float lower = maxima[q * n_tiles + t], score = score_of(w, w->q + q * w->n, item);
        double size = norm_of_query(w, w->q + q * w->n) * norm_of_item(w, item);
        CHECK(w->present[item] ? lower <= score : lower == -INFINITY, "item %zu scores %g, below %g", item,
              (double)score, (double)lower);
        if (w->present[item] && draw == DRAW_GAUSS && w->n == w->n_used)
          CHECK((double)(score - lower) <= (0x1p-9 + 0x1p-18 * (double)(w->n / 8 + 4)) * size,
                "a slack of %g for norms of %g", (double)(score - lower), size);
      }
    }
  }
  copy_in(w, w->device_rows.present, w->present, w->n_items);
  device_free_host(&present);
  free(maxima);
}

/* Check the maxima of full tiles with a stride, and of a partial last tile. */
static void check_maxima(struct world *w, enum draw draw, size_t n_queries)
{
  struct vector_scan_input input = input_of(w, n_queries);
  size_t n_slots = w->n_items - 1 - dice_below(&w->dice, TILE - 1), n_tiles = (w->n_items / TILE + 1) / 2;
  float *maxima = malloc(n_queries * n_tiles * sizeof *maxima);

  draw_queries(w, DRAW_GAUSS, n_queries);
  upload_queries(w, n_queries, n_queries);
  CHECK_OK(vector_scan_maxima(w->stream, &input, n_slots, 2, n_tiles, w->device_maxima));
  copy_out(w, maxima, w->device_maxima, n_queries * n_tiles * sizeof *maxima);
  for (size_t q = 0; q < n_queries; q++) {
    for (size_t t = 0; t < n_tiles; t++) {
      float best = -INFINITY;
      for (size_t i = 2 * t * TILE; i < 2 * t * TILE + TILE && i < n_slots; i++)
        best = w->present[i] ? fmaxf(best, score_of(w, w->q + q * w->n, i)) : best;
      float lower = maxima[q * n_tiles + t];
      CHECK(lower <= best, "query %zu, tile %zu: %g is above %g", q, t, (double)lower, (double)best);
      CHECK(lower > -INFINITY || best == -INFINITY || draw == DRAW_HUGE || draw == DRAW_MIXED || draw == DRAW_SIZES,
            "query %zu, tile %zu: no bound for %g", q, t, (double)best);
    }
  }
  free(maxima);
}

/* Check the scores of lists of all lengths. */
static void check_scores(struct world *w, enum draw draw)
{
  size_t n = 7, capacity = w->lists.capacity;
  uint32_t *lengths = host_array(n, sizeof *lengths), *slots = host_array(n * capacity, sizeof *slots);
  float *scores = malloc(n * capacity * sizeof *scores);
  struct device_lists lists = w->lists;

  lists.n_lists = n;
  for (size_t q = 0; q < n; q++) {
    lengths[q] = q == 0 ? 0 : q == 1 ? (uint32_t)capacity + 3 : (uint32_t)dice_below(&w->dice, capacity);
    for (size_t i = 0; i < capacity; i++)
      slots[q * capacity + i] = (uint32_t)dice_below(&w->dice, w->n_items);
  }
  draw_queries(w, draw, n);
  upload_queries(w, n, n);
  copy_in(w, w->lists.n, lengths, n * sizeof *lengths);
  copy_in(w, w->lists.slots, slots, n * capacity * sizeof *slots);
  CHECK_OK(vector_score(w->stream, &w->device_rows, w->device_q, w->n, &lists));
  copy_out(w, scores, w->lists.scores, n * capacity * sizeof *scores);
  for (size_t q = 0; q < n; q++) {
    for (size_t i = 0; i < lengths[q] && i < capacity; i++) {
      float wanted = score_of(w, w->q + q * w->n, slots[q * capacity + i]);
      CHECK(memcmp(&wanted, &scores[q * capacity + i], sizeof wanted) == 0, "a score of %.9g, not %.9g",
            (double)scores[q * capacity + i], (double)wanted);
    }
  }
  device_free_host(&lengths);
  device_free_host(&slots);
  free(scores);
}

static int falling(const void *a, const void *b)
{
  const float *x = a, *y = b;

  return (*x < *y) - (*x > *y);
}

/* Check that few more than the K best items pass when the K-th best score is the floor. */
static void check_useful(size_t dim, uint64_t seed)
{
  enum { ITEMS = 79 * TILE, QUERIES = 8 };
  static const size_t ks[] = { 1, 10, 100 };
  static float scores[ITEMS];
  static struct world w;
  uint32_t lengths[QUERIES];

  open_world(&w, dim, dim, ITEMS, seed);
  fill_items(&w, DRAW_GAUSS);
  memset(w.present, 1, ITEMS);
  copy_in(&w, w.device_rows.present, w.present, ITEMS);
  CHECK_OK(vector_derive_items(w.stream, &w.device_rows, dim, dim, w.device_slots, ITEMS, &w.items));
  draw_queries(&w, DRAW_GAUSS, QUERIES);
  upload_queries(&w, QUERIES, QUERIES);
  struct vector_scan_input input = input_of(&w, QUERIES);
  for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
    for (size_t q = 0; q < QUERIES; q++) {
      for (size_t item = 0; item < ITEMS; item++)
        scores[item] = score_of(&w, w.q + q * dim, item);
      qsort(scores, ITEMS, sizeof *scores, falling);
      w.floors[q] = scores[ks[i] - 1];
    }
    copy_in(&w, w.device_floors, w.floors, sizeof lengths);
    CHECK_OK(lists_clear(w.stream, &w.lists));
    CHECK_OK(vector_scan_append(w.stream, &input, 0, ITEMS, w.device_floors, &w.lists));
    copy_out(&w, lengths, w.lists.n, sizeof lengths);
    for (size_t q = 0; q < QUERIES; q++)
      CHECK(lengths[q] >= ks[i] && lengths[q] < ks[i] + ks[i] / 2 + 8, "%u items pass for K = %zu", lengths[q], ks[i]);
  }
  close_world(&w);
}

static void check_dim(size_t n, size_t n_used, size_t n_tiles, uint64_t seed)
{
  static struct world w;

  open_world(&w, n, n_used, n_tiles * TILE, seed);
  for (enum draw draw = DRAW_GAUSS; draw < N_DRAWS; draw++) {
    draw_sigma(&w);
    fill_items(&w, draw);
    check_uppers(&w, draw, 3);
    check_uppers(&w, DRAW_GAUSS, 1);
    check_lowers(&w, draw, 1 + dice_below(&w.dice, 40));
    check_maxima(&w, draw, 1 + dice_below(&w.dice, 40));
    check_scores(&w, draw);
  }
  close_world(&w);
}

/* Vectors too long for shared memory. */
static void check_long(enum draw draw, uint64_t seed)
{
  static struct world w;

  open_world(&w, 12810, 12810, TILE, seed);
  fill_items(&w, draw);
  check_uppers(&w, draw, 1);
  check_maxima(&w, draw, 3);
  check_scores(&w, draw);
  close_world(&w);
}

int main(void)
{
  static const size_t dims[] = { 1, 3, 16, 33, 64, 130 };
  uint64_t seed = dice_seed();

  check_begin("gpu_vector_kernels");
  for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
    check_dim(dims[i], dims[i], i % 2 ? 1 : 3, seed + i);
  check_dim(100, 64, 2, seed + 10); /* tails */
  check_dim(33, 5, 2, seed + 11);
  check_dim(768, 768, 1, seed + 12);
  check_useful(64, seed);
  check_long(DRAW_GAUSS, seed + 13);
#ifndef SLUICE_CUDA_MODEL
  check_dim(13000, 13000, 2, seed + 14);
  check_useful(768, seed);
#endif
  return check_end("gpu_vector_kernels");
}
