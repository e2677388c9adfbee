/* SPDX-License-Identifier: Apache-2.0 */
/* A model's cross gate as mol_bounds() (kernels.h) reads it, and the proof of its bounds.
 *
 * mol_bounds() computes the score's logits as mol_score() does, to the last bit, and the cross gate's two matrix
 * products from products of 16 bits: in two parts of bf16 (level amx, bf16_layer.h) or in integers (avx512vnni,
 * int16_layer.h).
 *
 * How far its score phi' may be from mol_score()'s phi. Norms are Euclidean, of matrices spectral unless _F says
 * Frobenius; u = 2^-24; x' is what mol_bounds() has for x. A sum of n terms in f32 is off by at most (n + 3) u of the
 * terms' sizes, in whatever order. What is of second order is covered by one factor, SECOND_ORDER.
 *
 * 1. A layer takes inputs x~ for x. In integers |x - x~| <= unit sqrt(n) / 2 + 4 u |x|, unit at least max |x| over
 *    INT16_LAYER_MAX; in bf16 x~ is x. Its products with the weights are off by at most rest |x| + sums (|W|_F |x| +
 * |b|): in integers rest = |W - W~|, and sums = (n + 8) u for turning integers to f32, their unit, the bias, and
 *    mol_score()'s own sum; in bf16 rest = BF16_REST |W|_F, because each output's is at most BF16_REST |W_j| |x|, and
 *    sums = (4 n + 12) u, with 3 n products here and n there.
 * 2. So before SiLU the hidden layer is off by y - y' = W1 (l - l~) + what step 1 says.
 * 3. SiLU's slope lies within 0.5 +- 0.6, so that SiLU(y) - SiLU(y') = D (y - y') with a diagonal D in that range.
 *    mol_score()'s SiLU and the one here, with its approximate reciprocal, are apart by ROUGH_SILU_ERROR of the result.
 * 4. w - w' = W2 (h - h~) + what step 1 says of the second layer. What comes of l - l~ has the factor
 *    |W2 D W1| <= 0.5 |W2 W1| + 0.6 |W2| |W1|; what else step 2 has, 1.1 |W2|; SiLU's own errors, |W2|.
 * 5. z = u v + w is rounded once: |z - z'| <= |w - w'| + 2 u |z'|.
 * 6. So the logarithms of the softmax's weights, but for a number that all share, are off by a vector of norm
 *    delta = 1.1 |z - z'| + ROUGH_SILU_ERROR |z'| + (2 sqrt(L) + 6) u |z'| + 2 ROUGH_EXP_ERROR sqrt(L): SiLU's own
 *    errors; the maximum's subtraction; and two exponentials. (That mol_score()'s are clamped at e^-87, and these
 *    underflow below it, is less than step 8.)
 * 7. Let e' be the weights here, pi = e' / sum e', and e = c e' (1 + x) mol_score()'s, so that |x| <= kappa =
 *    exp(delta) - 1. For a number b, sum e (l - phi' - b) = c sum e' (-b + sum x pi (l - phi' - b)), because the mean
 *    of l under pi is phi'. That is not positive where b >= kappa (sqrt(C) + b sqrt(A)) with A = sum pi^2 and
 *    C = sum pi^2 (l - phi')^2, and then phi <= phi' + b. So b may be kappa sqrt(C) / (1 - kappa sqrt(A)); and in the
 *    same way phi >= phi' - b. Where kappa sqrt(A) comes near 1 there is no bound.
 * 8. Each of the two scores is a quotient of sums of L terms in f32, off by at most (2 L + 4) u max |l|, and
 *    max |l| <= |l|. Rounding of C's sums makes it smaller by at most 4 (L + 10) u A |l|^2: twice that is added.
 * Squares of weights that underflow are far less. C is taken around a score that is off by some eps, so that it is off
 * by at most 2 |eps| sqrt(A C) + eps^2 A more: where sqrt(C) >= 2^8 |eps| sqrt(A), less than the 2^-8 that kappa is
 * raised by; else a hundredth of what was added.
 *
 * |l|, |h'|, |z'|, A, C and the units are each item's own; what is multiplied by them is the model's, computed once.
 */
#ifndef KERNELS_MOL_REDUCED_GATE_H
#define KERNELS_MOL_REDUCED_GATE_H

#include "kernels/int16_layer.h"
#include "kernels/kernels.h"
#include "kernels/bf16_layer.h"

/* How far exponentials and SiLU here and in mol_score() are apart at most, as a share of the result, where that is a
 * normal number. */
#define ROUGH_EXP_ERROR  0x1p-17
#define ROUGH_SILU_ERROR (0x1p-14 + 0x1p-16)

/* delta = logit_unit unit_l + logits |l| + hidden_unit unit_h + hidden |h'| + gates |z'| + constant */
struct mol_reduced_factors {
  float logit_unit, logits, hidden_unit, hidden, gates, constant;
};

enum { GATE_LAYERS = 2 };

struct mol_reduced_gate {
  struct bf16_layer bf16[GATE_LAYERS];
  struct int16_layer int16[GATE_LAYERS];
  struct mol_reduced_factors bf16_factors, int16_factors;
};

#endif
