/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on Mixture-of-Logits scores for random models, for weights like those of trained ones, and at the limits of
 * half and single precision. The bounds of random models must be tight. */
#include "tests/gpu/bounds_checks.h"

#ifdef SLUICE_CUDA_MODEL
enum { N_USEFUL = 129 };
#else
enum { N_USEFUL = 1199 };
#endif

static const struct {
  size_t m, d;
} shapes[] = { { 8, 32 }, { 4, 64 }, { 8, 16 }, { 8, 64 }, { 8, 128 }, { 4, 16 }, { 4, 32 }, { 4, 128 } };

static void check_shapes_and_batches(void)
{
  static const size_t batches[] = { 5, 8, 17, 32, 33 };

  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    for (size_t n_queries = 1; n_queries <= 3; n_queries++) { /* up to two are scanned in another way */
      make_world(shapes[s].m, shapes[s].d, 20, s == 0 ? 263 : 62, n_queries);
      check_world("random", true);
    }
  }
  for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
    make_world(8, b == 2 ? 128 : 32, 20, b == 4 ? 62 : 31, batches[b]);
    check_world("batch", true);
  }
}

/* Each query has one item with one large logit, which has most of the weight. All other logits are far below, so most
 * warps need no gate. */
static void check_few_strong(void)
{
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    size_t m = shapes[s].m, d = shapes[s].d;
    make_world(m, d, 20, 150, 4);
    for (size_t i = 0; i < w.n_items; i++)
      scale(w.items[i], m * d, 0.05f);
    for (size_t q = 0; q < w.n_queries; q++) {
      size_t p = dice_below(&dice, w.n_logits), i = dice_below(&dice, w.n_items);
      memcpy(w.items[i] + p % m * d, w.queries + (q * P_Q + p / m) * d, d * sizeof(float));
      w.query_gates[q * w.n_logits + p] = 4;
      w.item_gates[i][p] = 8;
      w.present[i] = 1;
    }
    check_world("few strong", true);
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
    w.may_overflow = true;
    check_world("trained", true);
  }
}

/* Numbers at the limits of half and single precision. */
static void check_extremes(void)
{
  static const float ends[] = { 0, 1e-30f, 6e-8f, 1e-5f, 250, 6e4f, 1e6f, 3e38f };

  for (size_t i = 0; i < 12; i++) {
    make_world(shapes[i % 8].m, shapes[i % 8].d, i % 3 ? 20 : 30000, 17, 3);
    w.may_overflow = true;
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
  check_world("useful", true);
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
  check_few_strong();
  check_trained();
  check_extremes();
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
  if (check_size(true, dice_below(&dice, 2)))
    check_all();
#endif
  device_stream_close(&stream);
  return check_end("gpu_mol_bounds");
}
