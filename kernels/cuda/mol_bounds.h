/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on Mixture-of-Logits scores from products in half precision, on tensor cores, with their proof.
 *
 * One kernel computes logits, the cross gate's two layers, the softmax and the mix, 16 items by 8 query components at a
 * time, and leaves nothing in the device's memory but the items that it finds. Beside each score it has how far the
 * canonical one, mol_score()'s of kernels.h, may be from it.
 *
 * The proof. Norms are Euclidean, of matrices spectral unless _F says Frobenius; u = 2^-24; x is what mol_score()
 * computes, x' what the kernel does; x16 is x in half precision. A sum of n terms in f32 is off by at most (n + 1) u of
 * the terms' sizes, in whatever order; one mma_f16() by at most m = MMA_ERROR of them. What
 * is of second order is covered by one factor, BOUND_SECOND_ORDER of mol_half_gate.cuh.
 *
 * 1. Logits, l = T F g. F holds the query's components, G the item's. With F16 the components times T, rounded, and
 *    dG = G - G16, |l - l'| <= |T F - F16| |G|_F + |T F| |dG|_F + (m d_P / 16 + (d_P + 4) u) |T F|_F |G|_F. The
 *    spectral norms are of 8 rows: each block finds bounds on its queries' by squaring F F^T. |dG|_F is at most
 *    sqrt(P_x) times the item's stored residual. Components of items are no longer than MOL_BOUND_NORM_MAX. Rounding l'
 *    to half precision, as an operand and for the mix, adds 2^-11 |l'| and 2^-25 sqrt(L), where numbers are subnormal.
 * 2. Before the hidden layer's SiLU, y - y' = W1 (l - l') + (W1 - W1_16) l' + rest, |rest| <= (m L / 16 + (L + 4) u)
 *    (|W1|_F |l'| + |b1|).
 * 3. SiLU's slope lies within 0.5 +- 0.6, so that SiLU(y) - SiLU(y') = D (y - y') with a diagonal D in that range. The
 *    kernel's SiLU, y/2 + y/2 tanh(y/2), is off by 2^-12 |y'| of the unit's tanh; mol_score()'s by 2^-22 of itself.
 *    Rounding to half precision adds 2^-11 |h'| and 2^-25 sqrt(H).
 * 4. w - w' = W2 (h - h') + (W2 - W2_16) h' + rest, |rest| <= (m H / 16 + (H + 4) u) (|W2|_F |h'| + |b2|). What comes
 *    of step 1 has the factor |W2 D W1| <= 0.5 |W2 W1| + 0.6 |W2 / S| |S W1|, with any diagonal S;
 *    everything else of steps 2 and 3, 1.1 |W2|.
 * 5. |z - z'| <= |w - w'| + max |query gate| |v - v16| + 2 u |z'|.
 * 6. So the logarithms of the softmax's weights, but for a number that all share, are off by a vector of norm
 *    delta = 1.1 |z - z'| + (2^-12 + 2^-18) |z'| + 2^-14: SiLU's own error; and the arguments of two exponentials, the
 *    exponentials' errors and mol_score()'s subtraction of the maximum. (Its clamping at e^-87 is less than step 8.)
 * 7. Let e' be the kernel's weights, pi = e' / sum e', and e = c e' (1 + x) mol_score()'s, so that
 *    |x| <= kappa = exp(delta) - 1. Then sum e l' / sum e <= phi' + B if and only if
 *    sum pi (1 + x) (l' - phi' - B) <= 0; the left side is at most kappa |pi (l' - phi' - B)| - B, because the mean of
 *    l' under pi is phi'. So B may be the root of kappa^2 (C - 2 B E + B^2 A) = B^2 with A = sum pi^2,
 *    E = sum pi^2 (l' - phi') and C = sum pi^2 (l' - phi')^2, which are summed next to the score. Where kappa^2 A comes
 *    near 1, there is no bound. The lower bound has -E for E.
 * 8. In the mix, l for l' adds max |l - l'|, found as in step 1 without the square root; and each of the two scores is
 *    a quotient of sums, off by at most (2 L + 4) u max |l|; the kernel's, by 48 u max |l|, whose effect on step 7 is
 *    at most 2 / (1 - kappa^2 A) times that. Rounding of A, E and C is at most 2^-17 of what was added and subtracted.
 *
 * |l'|, |h'|, |z'|, A, E and C are each pair's own. A number beyond half's range gives infinities, then NaN, and NaN
 * counts as no bound.
 */
#ifndef KERNELS_CUDA_MOL_BOUNDS_H
#define KERNELS_CUDA_MOL_BOUNDS_H

#include "kernels/cuda/lists.h"
#include "kernels/cuda/mol_halves.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/kernels.h"

/* No component of an item may be longer: they are normalised, and rounded once. */
#define MOL_BOUND_NORM_MAX 1.001f

/* The cross gate's weights as the kernel reads them, in the device's memory, and the factors of the proof. */
struct mol_half_gate;

/* *out is NULL where there is no bound for the shape (P_q 8, P_x 4 or 8, d_P 16, 32, 64 or 128, hidden 128), for the
 * size of the weights, or in this device's shared memory. Returns ERR_MEMORY, ERR_DEVICE. Blocks: until the weights are
 * on the device. */
err_t mol_half_gate_open(const struct mol_shape *shape, const struct mol_gate *gate, struct device_stream *stream,
                         struct mol_half_gate **out);
void mol_half_gate_close(struct mol_half_gate **gate);

/* Pointers but the gate's are of the device. */
struct mol_bound_input {
  const struct mol_half_gate *gate;
  const uint8_t *present; /* [capacity]: of others, the copies may be anything */
  struct mol_halves items;
  const float *query_components; /* [n_queries][P_q][d_P] */
  const float *query_gates;      /* [n_queries][L], of pair (n, m) at n * P_x + m */
  size_t n_queries;
  unsigned n_blocks; /* that the device runs at a time */
};

/* Append the present slots first to first + n whose upper bound is not below floors[q], or is not known, to list q with
 * that bound; first is a multiple of 64. Returns ERR_DEVICE. */
err_t mol_bound_append(struct device_stream *stream, const struct mol_bound_input *input, size_t first, size_t n,
                       const float *floors, const struct device_lists *lists);

/* For every entry of list q, which is of query q: its upper bound to lists->scores, its lower bound to lowers
 * [n_lists][capacity]; +inf and -inf where they are not known. Entries must be present. Returns ERR_DEVICE. */
err_t mol_bound_lists(struct device_stream *stream, const struct mol_bound_input *input,
                      const struct device_lists *lists, float *lowers);

#ifdef __cplusplus
}
#endif

#endif
