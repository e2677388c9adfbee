/* SPDX-License-Identifier: Apache-2.0 */
/* A Mixture-of-Logits model with items and queries for the tests of bounds, on the host and on the device, and its
 * canonical scores. Items are rounded to half precision by arithmetic of this file. */
#ifndef TESTS_GPU_BOUNDS_WORLD_H
#define TESTS_GPU_BOUNDS_WORLD_H

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kernels/cuda/mol_bounds.h"
#include "kernels/kernels.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { P_Q = 8, HIDDEN = 128, L_MAX = 64, D_MAX = 128, ITEMS_MAX = 1200, QUERIES_MAX = 64 };

/* A model, items and queries on the host, and the scores and bounds found. */
struct world {
  struct mol_shape shape;
  size_t n_logits, n_items, n_queries;
  bool may_overflow; /* squares of the softmax's weights may be beyond f32 */
  float w1[L_MAX * HIDDEN], b1[HIDDEN], w2[HIDDEN * L_MAX], b2[L_MAX];
  float items[ITEMS_MAX][8 * D_MAX], item_gates[ITEMS_MAX][L_MAX];
  float queries[QUERIES_MAX * P_Q * D_MAX], query_gates[QUERIES_MAX * L_MAX];
  uint8_t present[ITEMS_MAX];
  float scores[QUERIES_MAX][ITEMS_MAX], uppers[QUERIES_MAX][ITEMS_MAX], lowers[QUERIES_MAX][ITEMS_MAX];
};

static struct world w;
static struct dice dice;
static struct device_stream *stream;

static inline void *to_device(const void *from, size_t bytes)
{
  void *staging, *memory;

  CHECK_OK(device_alloc_host(bytes, 1, &staging));
  CHECK_OK(device_alloc(bytes, 1, &memory));
  if (bytes)
    memcpy(staging, from, bytes);
  CHECK_OK(device_copy_in(stream, memory, staging, bytes));
  CHECK_OK(device_wait(stream));
  device_free_host(&staging);
  return memory;
}

static inline void from_device(void *to, const void *from, size_t bytes)
{
  void *staging;

  CHECK_OK(device_alloc_host(bytes, 1, &staging));
  CHECK_OK(device_copy_out(stream, staging, from, bytes));
  CHECK_OK(device_wait(stream));
  if (bytes)
    memcpy(to, staging, bytes);
  device_free_host(&staging);
}

static inline void drop(const void *memory)
{
  void *taken = (void *)(uintptr_t)memory;

  device_free(&taken);
}

/* Round to half precision, to nearest with ties to even. Bisection finds the two neighbours. */
static inline uint16_t half_of(float x)
{
  double size = fabs((double)x);
  uint16_t below = 0, above = 0x7bff;

  if (size >= 65520)
    return x < 0 ? 0xfc00 : 0x7c00;
  while (below < above) {
    uint16_t middle = (uint16_t)((below + above + 1) / 2);
    uint8_t bytes[2] = { (uint8_t)middle, (uint8_t)(middle >> 8) };
    if ((double)half_from_f16(bytes) <= size)
      below = middle;
    else
      above = (uint16_t)(middle - 1);
  }
  uint8_t low[2] = { (uint8_t)below, (uint8_t)(below >> 8) };
  uint8_t high[2] = { (uint8_t)(below + 1), (uint8_t)((below + 1) >> 8) };
  double to_low = size - (double)half_from_f16(low);
  double to_high = (below == 0x7bff ? 65536 : (double)half_from_f16(high)) - size;
  below = (uint16_t)(below + (to_high < to_low || (to_high == to_low && below % 2)));
  return (uint16_t)(below | (x < 0 ? 0x8000 : 0));
}

/* Further bits to cut off the items' half-precision copies. Their rounding errors then outweigh all other errors. */
static unsigned n_lost_bits;

/* Sums of squares: of rounding errors, and of rounded numbers. */
struct squares {
  double errors, rounded;
};

static inline struct squares round_all(const float *x, size_t n, uint16_t *out)
{
  struct squares sum = { 0, 0 };

  for (size_t i = 0; i < n; i++) {
    out[i] = (uint16_t)(half_of(x[i]) >> n_lost_bits << n_lost_bits);
    uint8_t bytes[2] = { (uint8_t)out[i], (uint8_t)(out[i] >> 8) };
    double rounded = (double)half_from_f16(bytes), error = (double)x[i] - rounded;
    sum.errors += error * error;
    sum.rounded += rounded * rounded;
  }
  return sum;
}

static inline float rounded_up(double x)
{
  return (float)(sqrt(x) * (1 + 1e-6));
}

static inline struct mol_bounds_input input_open(const struct mol_half_gate *gate)
{
  static uint16_t components[ITEMS_MAX * 8 * D_MAX], gates[ITEMS_MAX * L_MAX];
  static float residuals[ITEMS_MAX][MOL_RESIDUALS];
  size_t m = w.shape.n_item_components, d = w.shape.component_dim;

  for (size_t i = 0; i < w.n_items; i++) {
    float by_item[L_MAX];
    double most = 0;
    for (size_t c = 0; c < m; c++)
      most = fmax(most, round_all(w.items[i] + c * d, d, components + (i * m + c) * d).errors);
    for (size_t p = 0; p < w.n_logits; p++)
      by_item[p % m * P_Q + p / m] = w.item_gates[i][p];
    residuals[i][MOL_RESIDUAL_COMPONENT] = rounded_up(most);
    struct squares of_gates = round_all(by_item, w.n_logits, gates + i * w.n_logits);
    residuals[i][MOL_RESIDUAL_GATE] = rounded_up(of_gates.errors);
    residuals[i][MOL_GATE_NORM] = rounded_up(of_gates.rounded);
  }
  return (struct mol_bounds_input){
    .gate = gate,
    .present = to_device(w.present, w.n_items),
    .items = { .components = to_device(components, w.n_items * m * d * 2),
               .gates = to_device(gates, w.n_items * w.n_logits * 2),
               .residuals = to_device(residuals, w.n_items * sizeof residuals[0]) },
    .query_components = to_device(w.queries, w.n_queries * P_Q * d * sizeof(float)),
    .query_gates = to_device(w.query_gates, w.n_queries * w.n_logits * sizeof(float)),
    .n_queries = w.n_queries,
    .n_blocks = (unsigned)(1 + dice_below(&dice, 4)),
  };
}

static inline void input_close(struct mol_bounds_input *in)
{
  drop(in->present);
  drop(in->items.components);
  drop(in->items.gates);
  drop(in->items.residuals);
  drop(in->query_components);
  drop(in->query_gates);
}

static inline struct mol_gate gate_of_world(void)
{
  static float w1[L_MAX * HIDDEN], w2[HIDDEN * L_MAX];

  mol_pack(w.w1, w.n_logits, HIDDEN, w1);
  mol_pack(w.w2, HIDDEN, w.n_logits, w2);
  return (struct mol_gate){ w1, w.b1, w2, w.b2 };
}

/* Compute the canonical score of every item. */
static inline void score_all(void)
{
  static _Alignas(64) float components[8 * D_MAX * MOL_LANES], gates[L_MAX * MOL_LANES], scratch[1 << 16];
  size_t n = w.shape.n_item_components * w.shape.component_dim;
  struct mol_gate gate = gate_of_world();
  const struct kernels *ref;

  CHECK_OK(kernels_get(isa_detect(), &ref));
  CHECK(mol_scratch_floats(&w.shape) <= sizeof scratch / sizeof *scratch, "too little scratch");
  for (size_t first = 0; first < w.n_items; first += MOL_LANES) {
    for (size_t lane = 0; lane < MOL_LANES; lane++) {
      size_t i = first + lane < w.n_items ? first + lane : first;
      for (size_t k = 0; k < n; k++)
        components[k * MOL_LANES + lane] = w.items[i][k];
      for (size_t p = 0; p < w.n_logits; p++)
        gates[p * MOL_LANES + lane] = w.item_gates[i][p];
    }
    for (size_t q = 0; q < w.n_queries; q++) {
      float phi[MOL_LANES];
      ref->mol_score(&w.shape, &gate, w.queries + q * P_Q * w.shape.component_dim, w.query_gates + q * w.n_logits,
                     components, gates, scratch, NULL, phi);
      for (size_t lane = 0; lane < MOL_LANES && first + lane < w.n_items; lane++)
        w.scores[q][first + lane] = phi[lane];
    }
  }
}

static inline void fill(float *x, size_t n, float scale)
{
  dice_fill(&dice, x, n, scale);
}

static inline void normalize(float *x, size_t n, size_t d)
{
  kernels_normalize(x, n, d, 1e-6f);
}

/* Make a random model with Xavier's weights, items and queries. */
static inline void make_world(size_t m, size_t d, float inv_temperature, size_t n_items, size_t n_queries)
{
  w.shape = (struct mol_shape){ P_Q, m, d, HIDDEN, inv_temperature };
  w.n_logits = P_Q * m;
  w.n_items = n_items;
  w.n_queries = n_queries;
  w.may_overflow = false;
  float xavier = sqrtf(6.0f / (float)(w.n_logits + HIDDEN));
  fill(w.w1, w.n_logits * HIDDEN, xavier);
  fill(w.b1, HIDDEN, 0.1f);
  fill(w.w2, w.n_logits * HIDDEN, xavier);
  fill(w.b2, w.n_logits, 0.1f);
  for (size_t i = 0; i < n_items; i++) {
    fill(w.items[i], m * d, 1.0f);
    normalize(w.items[i], m, d);
    fill(w.item_gates[i], w.n_logits, 1.7f);
    w.present[i] = dice_below(&dice, 8) != 0;
  }
  fill(w.queries, n_queries * P_Q * d, 1.0f);
  normalize(w.queries, n_queries * P_Q, d);
  fill(w.query_gates, n_queries * w.n_logits, 1.7f);
}

static inline void scale(float *x, size_t n, float by)
{
  for (size_t i = 0; i < n; i++)
    x[i] *= by;
}

static inline void scale_item_gates(float by)
{
  for (size_t i = 0; i < w.n_items; i++)
    scale(w.item_gates[i], w.n_logits, by);
}

#endif
