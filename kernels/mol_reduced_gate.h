/* SPDX-License-Identifier: Apache-2.0 */
/* A model's cross gate in reduced precision, for mol_bounds() (kernels.h), and the proof of its bounds.
 *
 * mol_bounds() computes the logits like mol_score(), to the last bit. It computes the cross gate's two matrix products
 * from products of 16-bit integers (int16_layer.h).
 *
 * The proof bounds the distance between its score phi' and mol_score()'s phi. For any x of mol_score(), x' is its value
 * in mol_bounds(). Norms are Euclidean; those of matrices are spectral, or Frobenius where _F says so. u = 2^-24. A sum
 * of n terms in f32, in any order, has an error of at most (n + 3) u times the sum of the terms' sizes. One factor,
 * SECOND_ORDER, covers all terms of second order.
 *
 * 1. A layer reads inputs x~ instead of x and weights W~ instead of W. |x - x~| <= unit sqrt(n) / 2 + 4 u |x|, and unit
 *    is at least max |x| / INT16_LAYER_MAX. The error of the layer's products is at most
 *    |W - W~| |x| + (n + 8) u (|W|_F |x| + |b|). The second term covers the conversion of integers to f32, their unit,
 *    the bias, and mol_score()'s own sum.
 * 2. So before SiLU the hidden layer's error is y - y' = W1 (l - l~) + the errors of step 1.
 * 3. SiLU's slope lies within 0.5 +- 0.6. So SiLU(y) - SiLU(y') = D (y - y') with a diagonal matrix D in that range.
 *    mol_score()'s SiLU and the one here, which uses an approximate reciprocal, differ by at most ROUGH_SILU_ERROR
 *    times the result.
 * 4. w - w' = W2 (h - h~) + the errors of step 1 in the second layer. The error l - l~ enters with the factor
 *    |W2 D W1| <= 0.5 |W2 W1| + 0.6 |W2| |W1|; the other errors of step 2 with 1.1 |W2|; SiLU's own errors with |W2|.
 * 5. z = q v + w, with q and v the gates of query and item, is rounded once: |z - z'| <= |w - w'| + 2 u |z'|.
 * 6. So the logarithms of the softmax's weights, up to a constant that all share, have an error vector of norm at most
 *    delta = 1.1 |z - z'| + ROUGH_SILU_ERROR |z'| + (2 sqrt(L) + 6) u |z'| + 2 ROUGH_EXP_ERROR sqrt(L). The terms are:
 *    SiLU's slope, SiLU's own error, the subtraction of the maximum, and two exponentials. (mol_score() clamps its
 *    exponentials at e^-87, and those here underflow below it: that is less than step 8.)
 * 7. Let e' be the weights here, pi = e' / sum e', and e = c e' (1 + x) mol_score()'s, with |x| <= kappa =
 *    exp(delta) - 1. For any number b, sum e (l - phi' - b) = c sum e' (-b + sum x pi (l - phi' - b)), because the mean
 *    of l under pi is phi'. This is not positive if b >= kappa (sqrt(C) + b sqrt(A)), with A = sum pi^2 and
 *    C = sum pi^2 (l - phi')^2; then phi <= phi' + b. So b = kappa sqrt(C) / (1 - kappa sqrt(A)) is a bound. In the
 *    same way phi >= phi' - b. If kappa sqrt(A) is near 1 there is no bound.
 * 8. Each of the two scores is a quotient of sums of L terms in f32, with an error of at most (2 L + 4) u max |l|, and
 *    max |l| <= |l|. Rounding makes the sums of C smaller by at most 4 (L + 10) u A |l|^2: twice that is added. Squares
 *    of weights that underflow are far smaller. C is taken around a score with some error eps, which changes it by at
 *    most 2 |eps| sqrt(A C) + eps^2 A. If sqrt(C) >= 2^8 |eps| sqrt(A), that is less than the 2^-8 by which kappa is
 *    raised; otherwise it is a hundredth of what was added.
 *
 * |l|, |h'|, |z'|, A, C and the units are computed for each item. Their factors depend on the model only and are
 * computed once.
 */
#ifndef KERNELS_MOL_REDUCED_GATE_H
#define KERNELS_MOL_REDUCED_GATE_H

#include "kernels/int16_layer.h"
#include "kernels/mol.h"
#include "kernels/mol_screen.h"

/* Largest difference between the exponentials, and the SiLU, of mol_bounds() and of mol_score(), as a share of the
 * result. Holds where the result is a normal number. */
#define ROUGH_EXP_ERROR  0x1p-17
#define ROUGH_SILU_ERROR (0x1p-14 + 0x1p-16)

/* delta = logit_unit unit_l + logits |l| + hidden_unit unit_h + hidden |h'| + gates |z'| + constant */
struct mol_reduced_factors {
  float logit_unit, logits, hidden_unit, hidden, gates, constant;
};

enum { GATE_LAYERS = 2 };

struct mol_reduced_gate {
  struct int16_layer layers[GATE_LAYERS];
  struct mol_reduced_factors factors;
  struct mol_screen screen;
};

#endif
