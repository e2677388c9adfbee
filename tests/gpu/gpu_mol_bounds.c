/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on Mixture-of-Logits scores. No score may be outside its bounds, the bounds of a random model must be tight,
 * and a scan must append exactly the items whose bounds reach the floor. This file rounds items to half precision with
 * its own arithmetic. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kernels/cuda/mol_bounds.h"
#include "kernels/kernels.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { P_Q = 8, HIDDEN = 128, L_MAX = 64, D_MAX = 128, ITEMS_MAX = 1200, QUERIES_MAX = 64 };
#ifdef SLUICE_CUDA_MODEL
enum { N_USEFUL = 129 };
#else
enum { N_USEFUL = 1199 };
#endif

/* A model, items and queries on the host, and the scores and bounds found. */
struct world {
  struct mol_shape shape;
  size_t n_logits, n_items, n_queries;
  float w1[L_MAX * HIDDEN], b1[HIDDEN], w2[HIDDEN * L_MAX], b2[L_MAX];
  float items[ITEMS_MAX][8 * D_MAX], item_gates[ITEMS_MAX][L_MAX];
  float queries[QUERIES_MAX * P_Q * D_MAX], query_gates[QUERIES_MAX * L_MAX];
  uint8_t present[ITEMS_MAX];
  float scores[QUERIES_MAX][ITEMS_MAX], uppers[QUERIES_MAX][ITEMS_MAX], lowers[QUERIES_MAX][ITEMS_MAX];
};

static struct world w;
static struct dice dice;
static struct device_stream *stream;

/* Device -------------------- */

static void *to_device(const void *from, size_t bytes)
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

static void from_device(void *to, const void *from, size_t bytes)
{
  void *staging;

  CHECK_OK(device_alloc_host(bytes, 1, &staging));
  CHECK_OK(device_copy_out(stream, staging, from, bytes));
  CHECK_OK(device_wait(stream));
  if (bytes)
    memcpy(to, staging, bytes);
  device_free_host(&staging);
}

static void drop(const void *memory)
{
  void *taken = (void *)(uintptr_t)memory;

  device_free(&taken);
}

/* Round to half precision, to nearest with ties to even. Bisection finds the two neighbours. */
static uint16_t half_of(float x)
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

/* Round n numbers. Returns the sum of the squared rounding errors. */
static double round_all(const float *x, size_t n, uint16_t *out)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++) {
    out[i] = (uint16_t)(half_of(x[i]) >> n_lost_bits << n_lost_bits);
    uint8_t bytes[2] = { (uint8_t)out[i], (uint8_t)(out[i] >> 8) };
    double rest = (double)x[i] - (double)half_from_f16(bytes);
    sum += rest * rest;
  }
  return sum;
}

static float rounded_up(double x)
{
  return (float)(sqrt(x) * (1 + 1e-6));
}

static struct mol_bounds_input input_open(const struct mol_half_gate *gate)
{
  static uint16_t components[ITEMS_MAX * 8 * D_MAX], gates[ITEMS_MAX * L_MAX];
  static float residuals[ITEMS_MAX][MOL_RESIDUALS];
  size_t m = w.shape.n_item_components, d = w.shape.component_dim;

  for (size_t i = 0; i < w.n_items; i++) {
    float by_item[L_MAX];
    double most = 0;
    for (size_t c = 0; c < m; c++)
      most = fmax(most, round_all(w.items[i] + c * d, d, components + (i * m + c) * d));
    for (size_t p = 0; p < w.n_logits; p++)
      by_item[p % m * P_Q + p / m] = w.item_gates[i][p];
    residuals[i][MOL_RESIDUAL_COMPONENT] = rounded_up(most);
    residuals[i][MOL_RESIDUAL_GATE] = rounded_up(round_all(by_item, w.n_logits, gates + i * w.n_logits));
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

static void input_close(struct mol_bounds_input *in)
{
  drop(in->present);
  drop(in->items.components);
  drop(in->items.gates);
  drop(in->items.residuals);
  drop(in->query_components);
  drop(in->query_gates);
}

/* Scores and bounds -------------------- */

static struct mol_gate gate_of_world(void)
{
  static float w1[L_MAX * HIDDEN], w2[HIDDEN * L_MAX];

  mol_pack(w.w1, w.n_logits, HIDDEN, w1);
  mol_pack(w.w2, HIDDEN, w.n_logits, w2);
  return (struct mol_gate){ w1, w.b1, w2, w.b2 };
}

/* Compute the canonical score of every item. */
static void score_all(void)
{
  static _Alignas(64) float components[8 * D_MAX * MOL_LANES], gates[L_MAX * MOL_LANES], scratch[1 << 16];
  size_t n = w.shape.n_item_components * w.shape.component_dim;
  struct mol_gate gate = gate_of_world();
  const struct kernels *ref;

  CHECK_OK(kernels_get(ISA_REF, &ref));
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

/* Bound all items, in lists with a different order each; some lists have overflowed. */
static void bound_all(const struct mol_bounds_input *in)
{
  static uint32_t slots[QUERIES_MAX * ITEMS_MAX];
  static float uppers[QUERIES_MAX * ITEMS_MAX], lowers[QUERIES_MAX * ITEMS_MAX];
  uint32_t n[QUERIES_MAX];

  for (size_t q = 0; q < w.n_queries; q++) {
    n[q] = (uint32_t)(w.n_items + q); /* above capacity: overflowed */
    for (size_t i = 0; i < w.n_items; i++)
      slots[q * w.n_items + i] = (uint32_t)((i * 7 + q) % w.n_items);
  }
  CHECK(w.n_items % 7, "the orders would repeat items");
  size_t bytes = w.n_queries * w.n_items * 4;
  struct device_lists lists = { w.n_queries, w.n_items, to_device(n, w.n_queries * 4), to_device(slots, bytes),
                                to_device(uppers, bytes) };
  float *device_lowers = to_device(lowers, bytes);
  CHECK_OK(mol_bounds_lists(stream, in, &lists, device_lowers));
  from_device(uppers, lists.scores, bytes);
  from_device(lowers, device_lowers, bytes);
  for (size_t i = 0; i < w.n_queries * w.n_items; i++) {
    w.uppers[i / w.n_items][slots[i]] = uppers[i];
    w.lowers[i / w.n_items][slots[i]] = lowers[i];
  }
  drop(lists.n);
  drop(lists.slots);
  drop(lists.scores);
  drop(device_lowers);
}

static void check_bounds(const char *what)
{
  for (size_t q = 0; q < w.n_queries; q++) {
    for (size_t i = 0; i < w.n_items; i++)
      CHECK(w.uppers[q][i] == INFINITY || (w.lowers[q][i] <= w.scores[q][i] && w.scores[q][i] <= w.uppers[q][i]),
            "%s, %zux%zux%zu, query %zu, item %zu: %.9g is not within %.9g and %.9g", what, w.shape.n_query_components,
            w.shape.n_item_components, w.shape.component_dim, q, i, (double)w.scores[q][i], (double)w.lowers[q][i],
            (double)w.uppers[q][i]);
  }
}

/* Check that a scan of n slots from `first` on appends the items whose bounds reach these floors, with the same bounds.
 */
static void check_append(const struct mol_bounds_input *in, size_t first, size_t n, const float *floors)
{
  static uint32_t slots[QUERIES_MAX * ITEMS_MAX];
  static float found[QUERIES_MAX * ITEMS_MAX], lowers[QUERIES_MAX * ITEMS_MAX];
  uint32_t lengths[QUERIES_MAX] = { 0 };
  size_t bytes = w.n_queries * w.n_items * 4;
  float *device_floors = to_device(floors, w.n_queries * sizeof *floors);
  struct device_lists lists = { w.n_queries, w.n_items, to_device(lengths, w.n_queries * 4), to_device(slots, bytes),
                                to_device(found, bytes) };
  float *device_lowers = dice_below(&dice, 3) ? to_device(lowers, bytes) : NULL;

  CHECK_OK(mol_bounds_append(stream, in, first, n, device_floors, &lists, device_lowers));
  from_device(lengths, lists.n, w.n_queries * 4);
  from_device(slots, lists.slots, bytes);
  from_device(found, lists.scores, bytes);
  if (device_lowers)
    from_device(lowers, device_lowers, bytes);
  for (size_t q = 0; q < w.n_queries; q++) {
    bool is_there[ITEMS_MAX] = { false };
    size_t expected = 0;
    for (size_t e = 0; e < lengths[q]; e++) {
      uint32_t slot = slots[q * w.n_items + e];
      CHECK(slot >= first && slot < first + n && !is_there[slot] && w.present[slot], "query %zu: slot %u", q, slot);
      is_there[slot] = true;
      CHECK(found[q * w.n_items + e] == w.uppers[q][slot], "query %zu, slot %u: %.9g, in a list %.9g", q, slot,
            (double)found[q * w.n_items + e], (double)w.uppers[q][slot]);
      CHECK(!device_lowers || lowers[q * w.n_items + e] == w.lowers[q][slot], "query %zu, slot %u: the lower bound", q,
            slot);
    }
    for (size_t i = first; i < first + n; i++) {
      bool is_hit = w.present[i] && !(w.uppers[q][i] < floors[q]);
      CHECK(is_hit == is_there[i], "query %zu, slot %zu: bound %.9g, floor %.9g", q, i, (double)w.uppers[q][i],
            (double)floors[q]);
      expected += is_hit;
    }
    CHECK(expected == lengths[q], "query %zu: %u of %zu", q, lengths[q], expected);
  }
  drop(device_floors);
  drop(device_lowers);
  drop(lists.n);
  drop(lists.slots);
  drop(lists.scores);
}

/* Check the largest lower bounds of every stride-th tile. */
static void check_maxima(const struct mol_bounds_input *in, size_t stride)
{
  enum { TILE = 64, EACH = TILE / MOL_BOUNDS_MAXIMA };
  static float found[QUERIES_MAX * (ITEMS_MAX / TILE + 1) * MOL_BOUNDS_MAXIMA];
  size_t n_all = (w.n_items + TILE - 1) / TILE, n_tiles = (n_all + stride - 1) / stride;
  size_t n = n_tiles * MOL_BOUNDS_MAXIMA, bytes = w.n_queries * n * sizeof *found;
  float *maxima = to_device(found, bytes);

  CHECK_OK(mol_bounds_maxima(stream, in, w.n_items, stride, n_tiles, maxima));
  from_device(found, maxima, bytes);
  for (size_t q = 0; q < w.n_queries; q++) {
    for (size_t g = 0; g < n; g++) {
      size_t first = g / MOL_BOUNDS_MAXIMA * stride * TILE + g % MOL_BOUNDS_MAXIMA * EACH;
      float due = -INFINITY;
      for (size_t i = first; i < first + EACH && i < w.n_items; i++)
        due = w.present[i] && w.lowers[q][i] > due ? w.lowers[q][i] : due;
      CHECK(found[q * n + g] == due, "query %zu, stride %zu, group %zu: %.9g, not %.9g", q, stride, g,
            (double)found[q * n + g], (double)due);
    }
  }
  drop(maxima);
}

static void check_appends(const struct mol_bounds_input *in)
{
  float floors[QUERIES_MAX];
  size_t first = dice_below(&dice, w.n_items / 64 + 1) * 64;

  for (size_t q = 0; q < w.n_queries; q++)
    floors[q] = q % 5 == 3 ? -INFINITY : w.uppers[q][dice_below(&dice, w.n_items)];
  check_append(in, 0, w.n_items, floors);
  if (first < w.n_items)
    check_append(in, first, 1 + dice_below(&dice, w.n_items - first), floors);
  check_maxima(in, 1 + dice_below(&dice, 4));
}

/* Run all checks on the current world. */
static void check_world(const char *what, bool is_scanned)
{
  struct mol_gate gate = gate_of_world();
  struct mol_half_gate *bound;

  CHECK_OK(mol_half_gate_open(&w.shape, &gate, stream, &bound));
  CHECK(bound, "%s: no bound", what);
  struct mol_bounds_input in = input_open(bound);
  score_all();
  bound_all(&in);
  check_bounds(what);
  if (is_scanned)
    check_appends(&in);
  input_close(&in);
  mol_half_gate_close(&bound);
}

/* Worlds -------------------- */

static void fill(float *x, size_t n, float scale)
{
  dice_fill(&dice, x, n, scale);
}

static void normalize(float *x, size_t n, size_t d)
{
  kernels_normalize(x, n, d, 1e-6f);
}

/* Make a random model with Xavier's weights, items and queries. */
static void make_world(size_t m, size_t d, float inv_temperature, size_t n_items, size_t n_queries)
{
  w.shape = (struct mol_shape){ P_Q, m, d, HIDDEN, inv_temperature };
  w.n_logits = P_Q * m;
  w.n_items = n_items;
  w.n_queries = n_queries;
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

static void scale(float *x, size_t n, float by)
{
  for (size_t i = 0; i < n; i++)
    x[i] *= by;
}

static void scale_item_gates(float by)
{
  for (size_t i = 0; i < w.n_items; i++)
    scale(w.item_gates[i], w.n_logits, by);
}

static const struct {
  size_t m, d;
} shapes[] = { { 8, 32 }, { 4, 64 }, { 8, 16 }, { 8, 64 }, { 8, 128 }, { 4, 16 }, { 4, 32 }, { 4, 128 } };

static void check_shapes_and_batches(void)
{
  static const size_t batches[] = { 5, 17, 32, 33 };

  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    make_world(shapes[s].m, shapes[s].d, 20, s == 0 ? 263 : 62, 1 + s);
    check_world("random", true);
  }
  for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
    make_world(8, b == 1 ? 128 : 32, 20, b == 3 ? 62 : 31, batches[b]);
    check_world("batch", true);
  }
}

/* Weights like those of trained models: larger, with gates far open or shut, at high and low temperatures. */
static void check_trained(void)
{
  static const float temperatures[] = { 100, 20, 1, 0.01f }, weights[] = { 1, 3, 0.1f, 1e-6f },
                     gates[] = { 4, 1, 0, 8 };

  for (size_t i = 0; i < 8; i++) {
    make_world(shapes[i].m, shapes[i].d, temperatures[i % 4], 33, 4);
    scale(w.w1, w.n_logits * HIDDEN, weights[dice_below(&dice, 4)]);
    scale(w.w2, w.n_logits * HIDDEN, weights[dice_below(&dice, 4)]);
    scale(w.query_gates, w.n_queries * w.n_logits, gates[i % 4]);
    scale_item_gates(gates[dice_below(&dice, 4)]);
    check_world("trained", true);
  }
}

/* Numbers at the limits of half and single precision. */
static void check_extremes(void)
{
  static const float ends[] = { 0, 1e-30f, 6e-8f, 1e-5f, 250, 6e4f, 1e6f, 3e38f };

  for (size_t i = 0; i < 12; i++) {
    make_world(shapes[i % 8].m, shapes[i % 8].d, i % 3 ? 20 : 30000, 17, 3);
    size_t d = w.shape.component_dim;
    scale(w.items[1], d, 0); /* zero vectors */
    scale(w.items[2], w.shape.n_item_components * d, 0);
    scale(w.items[3], w.shape.n_item_components * d, 1e-20f);
    scale(w.queries, d, 0);
    scale(w.queries + P_Q * d, P_Q * d, i % 2 ? 0 : 1e-30f);
    scale(w.item_gates[4], w.n_logits, ends[dice_below(&dice, 8)]);
    scale(w.item_gates[5], w.n_logits, ends[dice_below(&dice, 8)]);
    scale(w.item_gates[6], w.n_logits, ends[dice_below(&dice, 8)]);
    scale(w.query_gates + w.n_logits, w.n_logits, ends[dice_below(&dice, 8)]);
    scale(w.w1, w.n_logits * HIDDEN, fminf(ends[dice_below(&dice, 8)], 32767 * 4));
    scale(w.w2, w.n_logits * HIDDEN, fminf(ends[dice_below(&dice, 8)], 32767 * 4));
    check_world("extremes", true);
  }
}

/* Return a number that rounds down with a relative error of nearly 2^-11, the maximum. Or one with a smaller error, one
 * that rounds up, or one that is not rounded. */
static float tailed(float power_of_2)
{
  static const float tails[] = { 1 + 0x1.fep-12f, 1 + 0x1.8p-12f, 1 - 0x1.fep-13f, 1 };

  return power_of_2 * tails[dice_below(&dice, 4)];
}

/* Make a gate whose errors add up. First-layer weights have their logit's sign. Second-layer weights move the gates by
 * that sign, of all logits or only of the positive ones. Biases put both SiLUs where they are steepest. */
static void align_gate(float w1, float w2, float l, float sign, bool is_both)
{
  size_t m = w.shape.n_item_components;

  for (size_t j = 0; j < HIDDEN; j++)
    w.b1[j] = 2.4f - (float)w.n_logits * l * w1;
  for (size_t p = 0; p < w.n_logits; p++) {
    bool is_positive = p % m % 2;
    float way = is_positive ? sign : is_both ? -sign : 0;
    w.b2[p] = -way * HIDDEN * 2.2f * w2;
    for (size_t j = 0; j < HIDDEN; j++) {
      w.w1[p * HIDDEN + j] = is_positive ? w1 : -w1;
      w.w2[j * w.n_logits + p] = way * w2;
    }
    for (size_t item = 0; item < w.n_items; item++)
      w.item_gates[item][p] = (float)item * 0.25f - 3;
    w.query_gates[p] = 1;
    w.query_gates[w.n_logits + p] = tailed(is_positive ? 2 : 1);
  }
}

/* Return a bias of about 2.4. There SiLU is steep, and its value rounds down by nearly half a unit in the last place.
 */
static float rounding_bias(void)
{
  for (float y = 2.4f;; y += 1e-4f) {
    float h = (float)((double)y / (1 + exp(-(double)y)));
    uint16_t half = half_of(h);
    uint8_t bytes[2] = { (uint8_t)half, (uint8_t)(half >> 8) };
    if (h - half_from_f16(bytes) > 0.9f * 0x1p-10f)
      return y;
  }
}

/* The errors that all have the same sign. From ALIGNED_LOGITS on, they reach at least two thirds of what the proof
 * allows. */
enum aligned {
  ALIGNED_NO_GATE,
  ALIGNED_ANY,
  ALIGNED_LOGITS,
  ALIGNED_LOGITS_ALONE,
  ALIGNED_ITEMS,
  ALIGNED_HIDDEN,
  ALIGNED_GATES,
  ALIGNED_ONE_GATE,
  ALIGNED_TANH,
  N_ALIGNED
};

/* Change the gates and weights that align_gate() made, for one kind. */
static void align_more(enum aligned kind, float sign)
{
  size_t m = w.shape.n_item_components;

  for (size_t j = 0; kind == ALIGNED_HIDDEN && j < HIDDEN; j++)
    w.b1[j] = rounding_bias();
  for (size_t p = 0; kind == ALIGNED_GATES && p < w.n_logits; p++) {
    float v = (p % m % 2 ? sign : -sign) * (2 - 0x1.04p-11f);
    w.b2[p] = 2.4f - 8 * v;
    w.query_gates[p] = w.query_gates[w.n_logits + p] = 8;
    for (size_t i = 0; i < w.n_items; i++)
      w.item_gates[i][p] = v;
  }
  /* One softmax weight is as large as all others together, and has a large error. */
  for (size_t p = 0; kind == ALIGNED_ONE_GATE && p < w.n_logits; p++) {
    float v = p == 1 ? 2 - 0x1.04p-11f : 0, u = sign * 22;
    w.b2[p] = p == 1 ? logf((float)w.n_logits) - u * v : 0;
    w.query_gates[p] = w.query_gates[w.n_logits + p] = u;
    for (size_t i = 0; i < w.n_items; i++)
      w.item_gates[i][p] = v;
  }
  /* z is large and the weights are nearly equal, so only the error of tanh remains. */
  for (size_t p = 0; kind == ALIGNED_TANH && p < w.n_logits; p++) {
    w.b2[p] = 40;
    w.query_gates[p] = w.query_gates[w.n_logits + p] = p % m % 2 ? 1.0f : 0.0f;
    for (size_t i = 0; i < w.n_items; i++)
      w.item_gates[i][p] = (float)i * 0x1p-7f;
  }
}

/* Check one kind. Components of nearly equal numbers give logits of about l and -l. */
static void check_aligned_one(size_t m, size_t d, enum aligned kind, float sign)
{
  bool is_sharp = kind >= ALIGNED_LOGITS, is_exact = kind >= ALIGNED_HIDDEN;
  bool is_linear = kind == ALIGNED_NO_GATE || kind == ALIGNED_LOGITS_ALONE || kind >= ALIGNED_GATES;
  float side = 1 / sqrtf((float)d), most = is_exact ? 1 : kind == ALIGNED_ITEMS ? 1 - 0x1.04p-12f : 1 + 0x1.fep-12f;
  float g = is_sharp ? side * most : tailed(side), f = is_sharp ? side * most : tailed(side);
  float w1 = is_sharp ? 0x1p-7f : tailed(ldexpf(1, -3 - (int)dice_below(&dice, 6)));
  float w2 = is_sharp ? 0x1p-7f : tailed(ldexpf(1, -3 - (int)dice_below(&dice, 6)));

  make_world(m, d, is_sharp ? 32 : ldexpf(1, (int)dice_below(&dice, 6)), is_sharp ? 33 : 17, 2);
  if (kind == ALIGNED_ITEMS)
    w2 = 0x1p-8f;
  if (kind == ALIGNED_HIDDEN) {
    w1 = 0;
    w2 = 0x1p-4f;
  }
  align_gate(is_linear ? 0 : w1, is_linear ? 0 : w2, w.shape.inv_temperature * g * f * (float)d, sign,
             is_sharp || dice_below(&dice, 2));
  align_more(kind, sign);
  for (size_t i = 0; i < w.n_items; i++) {
    for (size_t k = 0; k < m * d; k++)
      w.items[i][k] = k / d % 2 || kind == ALIGNED_NO_GATE || kind == ALIGNED_LOGITS_ALONE ? g : -g;
  }
  for (size_t k = 0; k < w.n_queries * P_Q * d; k++) {
    bool is_first = is_sharp && !is_exact && k % d == 0; /* a first number that makes the sum round down too */
    w.queries[k] = is_first ? f + side * (float)(d / 2 - 1) * 0x1p-10f : f;
  }
  n_lost_bits = kind == ALIGNED_ITEMS ? 3 : kind == ALIGNED_GATES ? 2 : kind == ALIGNED_ONE_GATE ? 5 : 0;
  check_world("aligned", false);
  n_lost_bits = 0;
}

static void check_aligned(void)
{
  for (size_t i = 0; i < 8; i++) {
    for (int kind = 0; kind < N_ALIGNED; kind++)
      check_aligned_one(i & 1 ? 8 : 4, i & 2 ? 64 : 16, (enum aligned)kind, i & 4 ? 1 : -1);
  }
}

static int compare_floats(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;

  return (x > y) - (x < y);
}

/* Check that the bounds are tight enough to be useful. In the reference shape a random model's scores have a standard
 * deviation of 1.6. */
static void check_usefulness(size_t m, size_t d)
{
  static float above[QUERIES_MAX * ITEMS_MAX];
  size_t n = 0;

  make_world(m, d, 20, N_USEFUL, 4);
  check_world("useful", false);
  for (size_t q = 0; q < w.n_queries; q++) {
    for (size_t i = 0; i < w.n_items; i++)
      above[n++] = w.uppers[q][i] - w.scores[q][i];
  }
  qsort(above, n, sizeof *above, compare_floats);
  printf("8x%zux%zu: bounds are above scores by %.3f (1%%), %.3f (10%%), %.3f (median), %.3f (90%%), %.3f (99%%)\n", m,
         d, (double)above[n / 100], (double)above[n / 10], (double)above[n / 2], (double)above[n - n / 10],
         (double)above[n - n / 100]);
  CHECK(above[n / 2] < 0.5f, "the bounds are too loose");
}

static void check_not_covered(void)
{
  struct mol_shape covered = { P_Q, 8, 32, HIDDEN, 20 };
  struct mol_shape others[] = {
    { 4, 8, 32, 128, 20 }, { 8, 5, 32, 128, 20 }, { 8, 8, 24, 128, 20 }, { 8, 8, 32, 64, 20 }, { 8, 8, 32, 128, 1e5f }
  };
  static const float beyond[] = { 33000, -33000, INFINITY, NAN };
  struct mol_gate gate = gate_of_world();
  struct mol_half_gate *bound;

  make_world(8, 32, 20, 1, 1);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    CHECK_OK(mol_half_gate_open(&others[i], &gate, stream, &bound));
    CHECK(!bound, "shape %zu", i);
  }
  for (size_t i = 0; i < 4; i++) {
    float *weights[] = { w.w1 + 100, w.b1 + 5, w.w2 + 8191, w.b2 + 63 }, was = *weights[i];
    *weights[i] = beyond[i];
    gate = gate_of_world();
    CHECK_OK(mol_half_gate_open(&covered, &gate, stream, &bound));
    CHECK(!bound, "weight %zu", i);
    *weights[i] = was;
  }
  mol_half_gate_close(&bound);
}

static void check_all(void)
{
  check_shapes_and_batches();
  check_trained();
  check_extremes();
  check_aligned();
}

int main(void)
{
  dice.state = dice_seed();
  check_begin("gpu_mol_bounds");
  CHECK_OK(device_stream_open(&stream));
  check_usefulness(8, 32);
  check_usefulness(4, 64);
  check_not_covered();
  check_all();
#ifdef SLUICE_CUDA_MODEL
  cuda_model_set_tensor_cores(CUDA_MODEL_AMPERE); /* keeps the fewest bits */
  if (check_size(true, false))
    check_all();
#endif
  device_stream_close(&stream);
  return check_end("gpu_mol_bounds");
}
