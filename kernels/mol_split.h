/* An upper bound on Mixture-of-Logits scores from products of 16 bits, with its proof.
 *
 * mol_upper() (kernels.h) computes the score's logits as mol_score() does, to the last bit, and the cross gate's two
 * matrix products in bf16 (8 significant bits): a number x is high + low + rest, |low| <= 2^-8 |x|, |rest| <= 2^-16
 * |x|, and of a product x w the parts high high, high low and low high are summed in f32. What is left out is at most
 * 3 * 2^-16 |x w|, a little more in second order.
 *
 * How far its score phi' may be from mol_score()'s phi. Norms are Euclidean; u = 2^-24; x' is what mol_upper() has for
 * x. What is of second order is covered by one factor, SPLIT_SECOND_ORDER.
 *
 * 1. A sum of n terms in f32, in whatever order, is off by at most n u times the sum of the terms' sizes. So before
 *    SiLU, hidden unit j is off by |y_j - y'_j| <= r1 sum_p |W1_jp| |l_p| + (L + 4) u |b1_j|, with
 *    r1 = 3 * 2^-16 + (4 L + 12) u: 3 L products and the bias here, L there. By Cauchy-Schwarz the sum is at most
 *    |W1_j| |l|.
 * 2. SiLU changes by at most 1.1 times what its argument changes by. mol_score()'s is off by 2^-22 of itself, this
 * one's by 2^-14 + 2^-22: it divides by an approximate reciprocal.
 * 3. In the same way |w_p - w'_p| <= sum_j |W2_pj| (1.1 |y_j - y'_j|) + r2 |W2_p| |h'| + (H + 4) u |b2_p|, with
 *    r2 = 2^-14 + 2^-21 + 3 * 2^-16 + (4 H + 12) u.
 * 4. z = u v + w is rounded once: |z_p - z'_p| <= |w_p - w'_p| + 2 u Z with Z = max_p |z'_p|.
 * 5. So no logarithm of a weight of the softmax, but for a factor that all share, is off by more than
 *    delta = 1.1 max_p |z_p - z'_p| + (2^-14 + 2^-21) Z + 2^-22 Z + 2^-22: SiLU's own error, the maximum's subtraction,
 *    and two exponentials within 1 ulp. (Exponentials are clamped at e^-87: to a sum whose largest term is 1 that makes
 *    no difference that step 7 would not cover.)
 * 6. Let e'_p be the weights here and e_p = c e'_p exp(d_p), |d_p| <= delta, mol_score()'s. Then
 *    phi - phi' = sum_p e_p (l_p - phi') / sum_p e_p. The l_p - phi' sum to 0 under the weights e', so that
 *    exp(d_p) - cosh(delta), which lies within +-sinh(delta), may stand for exp(d_p) in the numerator; the denominator
 *    is at least c exp(-delta) sum e'. With sigma the standard deviation of the logits under e', which is no less than
 *    their mean deviation, |phi - phi'| <= exp(delta) sinh(delta) sigma = (exp(2 delta) - 1) / 2 * sigma.
 * 7. Each of the two scores is a quotient of sums of L terms in f32, off by at most (2 L + 4) u max |l|. And
 *    max |l| <= |l|.
 *
 * |l|, |h'|, Z and sigma are each item's own; what is multiplied by them is the model's, and computed once. Denormal
 * numbers, which tiles take for zeros, matter less than 2^-80 where weights are below SPLIT_WEIGHT_MAX. No step
 * supposes an order of summation in a tile: the two manuals of the instruction give two.
 */
#ifndef KERNELS_MOL_SPLIT_H
#define KERNELS_MOL_SPLIT_H

#include "kernels/kernels.h"

enum {
  TILE_ROWS = 16,
  TILE_PAIRS = 16, /* pairs of bf16 in a row of a tile */
  SPLIT_PAD = 32,  /* what layers' sizes are rounded up to: whole tiles, as inputs and as outputs */
};

static inline size_t split_pad(size_t n)
{
  return (n + SPLIT_PAD - 1) / SPLIT_PAD * SPLIT_PAD;
}

/* The weights of a layer as tiles read them, an output a row; zeros where sizes are padded. */
struct split_layer {
  size_t n_in, n_out;   /* padded */
  uint16_t *high, *low; /* bf16 [n_out][n_in] */
};

struct mol_split {
  struct split_layer first, second;
  /* delta = per_logits |l| + per_hidden |h'| + per_gate Z + constant */
  float per_logits, per_hidden, per_gate, constant;
};

/* A number's bits rounded to bf16's precision, halves away from zero; the high 16 of them are the number in bf16. */
static inline uint32_t split_round(uint32_t bits)
{
  return (bits + 0x8000u) & 0xffff0000u;
}

#endif
