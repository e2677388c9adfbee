/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on Mixture-of-Logits scores where errors of one kind all have the same sign, and add up to most of what the
 * proof allows. */
#include "tests/gpu/bounds_checks.h"

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
 * allows, but for ALIGNED_BIASES: those would be far beyond it if a bias were one half and not the sum of two. */
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
  ALIGNED_BIASES,
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
  /* As halves, these biases are off by nearly 2^-6, up for logits of one sign and down for those of the other. */
  for (size_t p = 0; kind == ALIGNED_BIASES && p < w.n_logits; p++) {
    w.b2[p] = (p % m % 2 ? sign : -sign) > 0 ? 32 * (1 + 0x1.fep-12f) : 32 * (1 + 0x1.02p-11f);
    w.query_gates[p] = w.query_gates[w.n_logits + p] = 0;
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

  make_world(m, d, is_sharp ? 32 : ldexpf(1, (int)dice_below(&dice, 6)), is_sharp ? 33 : 17, 2 + dice_below(&dice, 2));
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
  check_world("aligned", true);
  n_lost_bits = 0;
}

static void check_aligned(void)
{
  for (size_t i = 0; i < 8; i++) {
    for (int kind = 0; kind < N_ALIGNED; kind++)
      check_aligned_one(i & 1 ? 8 : 4, i & 2 ? 64 : 16, (enum aligned)kind, i & 4 ? 1 : -1);
  }
}

int main(void)
{
  dice.state = dice_seed();
  check_begin("gpu_mol_bounds_aligned");
  CHECK_OK(device_stream_open(&stream));
  check_aligned();
#ifdef SLUICE_CUDA_MODEL
  cuda_model_set_tensor_cores(CUDA_MODEL_AMPERE); /* keeps the fewest bits */
  if (check_size(true, dice_below(&dice, 2)))
    check_aligned();
#endif
  device_stream_close(&stream);
  return check_end("gpu_mol_bounds_aligned");
}
