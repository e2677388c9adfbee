/* SPDX-License-Identifier: Apache-2.0 */
/* A catalogue of item components and query rows for the tests of component pairs, drawn in ways that are hard on
 * rounding, on the host and on the device; and its exact dot products. */
#ifndef TESTS_GPU_PAIRS_FIXTURE_H
#define TESTS_GPU_PAIRS_FIXTURE_H

#include <math.h>
#include <string.h>

#include "engine/cuda/mol_pairs_cuda.h"
#include "engine/mol/mol_model.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

#ifndef PAIRS_ITEMS_MAX
#define PAIRS_ITEMS_MAX 1500
#endif

enum { ITEMS_MAX = PAIRS_ITEMS_MAX, QUERIES_MAX = 33, EXCLUDED_MAX = 4 };

/* How components are drawn. */
enum draw {
  DRAW_UNIFORM,
  DRAW_FEW,     /* three different items: ties */
  DRAW_ZEROS,   /* mostly zeros */
  DRAW_HALFWAY, /* numbers just below the middle between two halves: all rounding errors have the same sign */
  DRAW_TINY,    /* numbers below half's range */
  DRAW_ONE_HOT,
  DRAW_SUBNORMAL, /* halves that need no rounding; a query's are subnormal, an item has one large number */
  N_DRAWS
};

static struct fixture {
  struct dice dice;
  struct mol_model model;
  size_t n_slots, n_items, n_queries;
  /* On the host. */
  float *rows; /* [n_slots][row_floats] */
  size_t row_floats;
  uint8_t *present; /* [n_slots] */
  uint64_t *words;  /* the same as bits */
  uint16_t *halves; /* [n_slots][stride] */
  float *residuals; /* [n_slots][MOL_RESIDUALS] */
  float *queries;   /* [n_queries][P_q][d] */
  float *dots;      /* [n_queries P_q][P_x][n_slots]: exact */
  uint32_t excluded[QUERIES_MAX][EXCLUDED_MAX];
  struct search_result results[QUERIES_MAX];
  /* On the device. */
  struct device_worker *worker;
  struct device_columns columns;
  struct mol_pairs_source source;
  struct region region;
} t;

static inline struct mol_shape *shape(void)
{
  return &t.model.shape;
}

static inline void *on_host(size_t count, size_t size)
{
  void *memory;

  CHECK_OK(device_alloc_host(count, size, &memory));
  return memory;
}

static inline void *to_device(const void *from, size_t count, size_t size)
{
  void *memory;

  CHECK_OK(device_alloc(count, size, &memory));
  CHECK_OK(device_copy_in(t.worker->stream, memory, from, count * size));
  CHECK_OK(device_wait(t.worker->stream));
  return memory;
}

static inline float draw_one(enum draw draw, size_t k, size_t hot)
{
  switch (draw) {
  case DRAW_ZEROS:
    return dice_below(&t.dice, 8) ? 0.0f : dice_float(&t.dice, 1.0f);
  case DRAW_HALFWAY: /* rounding loses nearly 2^-11 of the number */
    return (1.0f + 0x1p-11f - 0x1p-22f) * (dice_below(&t.dice, 2) ? 0.0625f : 0.03125f);
  case DRAW_TINY:
    return dice_float(&t.dice, dice_below(&t.dice, 2) ? 0x1p-20f : 0x1p-26f);
  case DRAW_ONE_HOT:
    return k == hot ? 1.0f : 0.0f;
  case DRAW_SUBNORMAL:
    return k == hot ? 0x1.ff8p-1f : (float)(1024 + dice_below(&t.dice, 1024)) * 0x1p-22f;
  default:
    return dice_float(&t.dice, 1.0f);
  }
}

/* Draw a component with a norm of at most 1, apart from rounding. */
static inline void draw_vector(enum draw draw, float *out, size_t dim)
{
  size_t hot = dice_below(&t.dice, dim);
  double square = 0;

  for (size_t k = 0; k < dim; k++) {
    out[k] = draw_one(draw, k, hot);
    square += (double)out[k] * (double)out[k];
  }
  float norm = (float)sqrt(square);
  for (size_t k = 0; k < dim && norm > 0.0f && (norm > 1.0f || draw == DRAW_UNIFORM); k++)
    out[k] /= norm;
}

/* Draw a query whose numbers are the smallest subnormal halves. Tensor cores count them as 2^-14, and cut the other
 * products of DRAW_SUBNORMAL's items. */
static inline void draw_subnormal_query(float *out, size_t dim)
{
  for (size_t k = 0; k < dim; k++)
    out[k] = (float)(1 + dice_below(&t.dice, 2)) * 0x1p-24f;
}

static inline uint16_t half_bits_of(float x, float *rounded)
{
  _Float16 half = (_Float16)x;
  uint16_t bits;

  memcpy(&bits, &half, sizeof bits);
  *rounded = (float)half;
  return bits;
}

/* Compute an item's entries in the derived arrays. */
static inline void derive(size_t slot)
{
  size_t dim = shape()->component_dim, n = shape()->n_item_components * dim, stride = mol_halves_stride(n, 8);
  const float *row = t.rows + slot * t.row_floats;
  double largest = 0, square = 0;

  memset(t.halves + slot * stride, 0, stride * sizeof *t.halves);
  for (size_t k = 0; k < n; k++) {
    float rounded;
    t.halves[slot * stride + k] = half_bits_of(row[k], &rounded);
    square = (k % dim == 0 ? 0 : square) + ((double)row[k] - (double)rounded) * ((double)row[k] - (double)rounded);
    largest = square > largest ? square : largest;
  }
  for (size_t i = 0; i < MOL_RESIDUALS; i++)
    t.residuals[slot * MOL_RESIDUALS + i] = NAN;
  t.residuals[slot * MOL_RESIDUALS + MOL_RESIDUAL_COMPONENT] = nextafterf((float)sqrt(largest), INFINITY);
}

static inline void draw_items(enum draw draw, size_t one_of)
{
  size_t n = shape()->n_item_components;

  t.n_items = 0;
  for (size_t slot = 0; slot < t.n_slots; slot++) {
    float *row = t.rows + slot * t.row_floats;
    for (size_t k = 0; k < t.row_floats; k++)
      row[k] = NAN; /* nothing after the components may be read */
    for (size_t m = 0; m < n; m++)
      draw_vector(draw, row + m * shape()->component_dim, shape()->component_dim);
    if (draw == DRAW_FEW && slot >= 3)
      memcpy(row, t.rows + dice_below(&t.dice, 3) * t.row_floats, t.row_floats * sizeof *row);
    t.present[slot] = dice_below(&t.dice, one_of) == 0;
    t.n_items += t.present[slot];
    if (t.present[slot])
      bits_set(t.words, slot);
    derive(slot);
  }
}

static inline float exact_dot(const float *f, const float *g, size_t n)
{
  float sum = 0.0f;
  double check = 0, sizes = 1;

  for (size_t k = 0; k < n; k++) {
    sum = fmaf(f[k], g[k], sum);
    check += (double)f[k] * (double)g[k];
    sizes += fabs((double)f[k] * (double)g[k]);
  }
  CHECK(!(fabs(check - (double)sum) > 1e-5 * sizes), "%g is not %g", (double)sum, check);
  return sum;
}

static inline float dot_at(size_t row, size_t m, size_t slot)
{
  return t.dots[(row * shape()->n_item_components + m) * t.n_slots + slot];
}

static inline void compute_dots(void)
{
  size_t dim = shape()->component_dim, n = shape()->n_item_components;

  for (size_t i = 0; i < t.n_queries * shape()->n_query_components * n * t.n_slots; i++) {
    size_t slot = i % t.n_slots, m = i / t.n_slots % n, row = i / t.n_slots / n;
    t.dots[i] = exact_dot(t.queries + row * dim, t.rows + slot * t.row_floats + m * dim, dim);
  }
}

static inline void draw_excluded(void)
{
  for (size_t q = 0; q < t.n_queries; q++) {
    size_t n = 0, slot = 0;
    for (size_t most = dice_below(&t.dice, EXCLUDED_MAX + 1); n < most && slot < t.n_slots;
         slot += 1 + dice_below(&t.dice, 9)) {
      if (t.present[slot])
        t.excluded[q][n++] = (uint32_t)slot;
    }
    t.results[q].admit = (struct admit){
      .words = t.words, .excluded = t.excluded[q], .n_excluded = n, .n_admitted = t.n_items - n
    };
  }
}

static inline void open_fixture(const struct mol_shape *of, size_t n_slots, size_t n_queries, enum draw draw,
                                size_t one_of)
{
  size_t n_rows = n_queries * of->n_query_components, n = of->n_item_components, whole = (n_slots + 63) / 64 * 64;
  size_t stride = mol_halves_stride(n * of->component_dim, 8);

  t.model.shape = *of;
  t.n_slots = n_slots;
  t.n_queries = n_queries;
  t.row_floats = n * of->component_dim + of->n_query_components * n + of->component_dim + 1;
  t.rows = on_host(n_slots, t.row_floats * sizeof(float));
  t.present = on_host(n_slots, 1);
  t.words = on_host(bits_words(n_slots), sizeof *t.words);
  memset(t.words, 0, bits_words(n_slots) * sizeof *t.words);
  t.halves = on_host(whole, stride * sizeof *t.halves);
  t.residuals = on_host(whole, MOL_RESIDUALS * sizeof *t.residuals);
  t.queries = on_host(n_rows, of->component_dim * sizeof *t.queries);
  t.dots = on_host(n_rows * n * n_slots, sizeof *t.dots);
  memset(t.halves, 0, whole * stride * sizeof *t.halves);
  memset(t.residuals, 0, whole * MOL_RESIDUALS * sizeof *t.residuals);
  draw_items(draw, one_of);
  for (size_t row = 0; row < n_rows; row++)
    draw_vector(draw == DRAW_FEW || dice_below(&t.dice, 8) == 0 ? DRAW_UNIFORM : draw,
                t.queries + row * of->component_dim, of->component_dim);
  for (size_t row = 0; draw == DRAW_SUBNORMAL && row < n_rows; row++)
    draw_subnormal_query(t.queries + row * of->component_dim, of->component_dim);
  draw_excluded();
}

/* Copy the fixture to the device. */
static inline void upload(void)
{
  size_t whole = (t.n_slots + 63) / 64 * 64, dim = shape()->component_dim;
  size_t stride = mol_halves_stride(shape()->n_item_components * dim, 8);

  compute_dots();
  device_worker_reset(t.worker);
  t.columns.model = &t.model.base;
  t.columns.rows =
      (struct device_rows){ t.row_floats * sizeof(float), to_device(t.rows, t.n_slots, t.row_floats * sizeof(float)),
                            to_device(t.present, t.n_slots, 1) };
  t.source.halves.components = to_device(t.halves, whole, stride * sizeof *t.halves);
  t.source.halves.residuals = to_device(t.residuals, whole, MOL_RESIDUALS * sizeof *t.residuals);
  t.source.query_components = to_device(t.queries, t.n_queries * shape()->n_query_components, dim * sizeof(float));
}

static inline void free_const(const void *memory)
{
  void *taken = (void *)(uintptr_t)memory;

  device_free(&taken);
}

static inline void forget_device(void)
{
  device_free(&t.columns.rows.bytes);
  device_free(&t.columns.rows.present);
  free_const(t.source.halves.components);
  free_const(t.source.halves.residuals);
  free_const(t.source.query_components);
}

static inline void close_fixture(void)
{
  forget_device();
  device_free_host(&t.rows);
  device_free_host(&t.present);
  device_free_host(&t.words);
  device_free_host(&t.halves);
  device_free_host(&t.residuals);
  device_free_host(&t.queries);
  device_free_host(&t.dots);
}

static inline int falling(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;

  return (x < y) - (x > y);
}

static const struct mol_shape shapes[] = { { 8, 8, 32, 1, 1.0f },  { 8, 4, 64, 1, 1.0f }, { 1, 1, 1, 1, 1.0f },
                                           { 2, 3, 5, 1, 1.0f },   { 3, 8, 16, 1, 1.0f }, { 1, 2, 72, 1, 1.0f },
                                           { 2, 1, 128, 1, 1.0f }, { 2, 2, 130, 1, 1.0f } };
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

#endif
