/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on Mixture-of-Logits scores from half-precision products on tensor cores, with their proof.
 *
 * The kernels compute logits, the cross gate's two layers, the softmax and the mix, for 16 items by 8 query components
 * at a time, and write only their results to device memory. Two of them compute with each score how far the canonical
 * score, that of mol_score() in kernels.h, may be from it. The third screens: it only tells which scores are below a
 * floor, which takes fewer steps.
 *
 * The proof. Vector norms are Euclidean. Matrix norms are spectral, or Frobenius where marked _F. u = 2^-24. x is
 * mol_score()'s value, x' the kernel's, and x16 is x rounded to half precision. A sum of n terms in f32, in any order,
 * is off by at most (n + 1) u times the sum of the terms' magnitudes; one step of the tensor core, of a warp or of a
 * warpgroup, by at most m = MMA_ERROR times that sum. One factor, BOUND_SECOND_ORDER of mol_half_gate.cuh, covers
 * everything of second order.
 *
 * 1. Logits: l = T F g. F has the query's components, G the item's. F16 is T F rounded, and dG = G - G16. Then
 *    |l - l'| <= |T F - F16| |G|_F + |T F| |dG|_F + (m d_P / 16 + (d_P + 4) u) |T F|_F |G|_F. The spectral norms are
 *    of 8 rows: each block bounds its queries' norms by squaring F F^T. |dG|_F is at most sqrt(P_x) times the item's
 *    stored residual. No component of an item is longer than MOL_BOUND_NORM_MAX. Rounding l' to half precision, as an
 *    operand and for the mix, adds 2^-11 |l'|, and 2^-25 sqrt(L) for subnormal numbers.
 * 2. Before the hidden layer's SiLU: y - y' = W1 (l - l') + (W1 - W1_16) l' + rest, with
 *    |rest| <= (m (L / 16 + 1) + (L + 20) u) (|W1|_F |l'| + |b1|) + 2^-22 |b1| + 2^-24 sqrt(H). The tensor core adds
 *    half the bias in a step of its own, as the sum of two halves.
 * 3. SiLU's slope is within 0.5 +- 0.6. So SiLU(y) - SiLU(y') = D (y - y') for a diagonal D with entries in that
 *    range. The kernel's SiLU is y/2 + y/2 tanh(y/2). The special-function unit's tanh makes it off by 2^-12 |y'|.
 *    mol_score()'s SiLU has a relative error of 2^-22. Rounding to half precision adds 2^-11 |h'| and 2^-25 sqrt(H).
 *    The sum of the squares of rounded h' is kept in two halves a lane, 16 of them in each. So it is too small by a
 *    relative 2^-7 at most, and by 2^-18 where squares are subnormal: find_kappa() adds more.
 * 4. w - w' = W2 (h - h') + (W2 - W2_16) h' + rest, with |rest| as in step 2: H and L change places, and h' and b2 take
 *    the places of l' and b1. The error from step 1 is multiplied by
 *    |W2 D W1| <= 0.5 |W2 W1| + 0.6 |W2 / S| |S W1|, for any diagonal S. All other errors of steps 2 and 3 are
 *    multiplied by 1.1 |W2|.
 * 5. |z - z'| <= |w - w'| + max |query gate| |v - v16| + 2 u |z'|.
 * 6. So the logarithms of the softmax's weights are off by a vector of norm
 *    delta = 1.1 |z - z'| + (2^-12 + 2^-18) |z'| + 2^-14, apart from a constant that all share. The second term is
 *    SiLU's own error, with |z'| <= |w'| + max |query gate| |v16| and
 *    |w'| <= (|W2| + |W2 - W2_16|) |h'| + |b2| + |rest|. The third covers the arguments and errors of two exponentials,
 *    and mol_score()'s subtraction of the maximum. (mol_score()'s clamping at e^-87 is less than step 8.)
 * 7. Let e' be the kernel's weights, pi = e' / sum e', and e = c e' (1 + x) mol_score()'s weights. Then
 *    |x| <= kappa = exp(delta) - 1. Now sum e l' / sum e <= phi' + B if and only if
 *    sum pi (1 + x) (l' - phi' - B) <= 0. The left side is at most kappa |pi (l' - phi' - B)| - B, because the mean of
 *    l' under pi is phi'. So B may be the root of kappa^2 (C - 2 B E + B^2 A) = B^2 with A = sum pi^2,
 *    E = sum pi^2 (l' - phi') and C = sum pi^2 (l' - phi')^2. The kernel sums A, E and C next to the score. When
 *    kappa^2 A is near 1 there is no bound. The lower bound has -E in place of E.
 * 8. In the mix, using l instead of l' adds max |l - l'|, found as in step 1 without the square root. Each score is a
 *    quotient of sums and off by at most (2 L + 4) u max |l|. The kernel's is off by 48 u max |l| only; the effect on
 *    step 7 is at most 2 / (1 - kappa^2 A) times that. A, E and C are rounded by at most 2^-17 of what was added and
 *    subtracted.
 * 9. Subnormal halves lose up to MMA_LOST max(|a|, |b|) in each step of the tensor core, besides m. In step 1 that is
 *    2^-26 max(1, |T F|) for a vector of logits: the 2^-21 that every error of logits has in addition, and the second
 *    order, have room for it. In steps 2 and 4 the factors of |l'| and |h'| and the constant have terms for it.
 * 10. To know that a score is below a floor F, neither phi' nor B is needed. Let T be F less the errors of step 8 but
 *    that of the kernel's quotient, and t = e' (l' - T). By step 7, sum e l' / sum e < T if N + kappa sqrt(Q) < 0 with
 *    N = sum t and Q = sum t^2. The floor is lowered by 2^-20 |F| more, for the roundings of T. N is off by at most
 *    (L + 4) u sum |t| <= (L + 4) u sqrt(L Q), which is below 2^-14 sqrt(Q); Q by a relative 2^-16, and by 2^-120 where
 *    squares underflow.
 * 11. If all l' are below T, a mean of them is too, whatever its weights.
 *
 * |l'|, |h'|, A, E and C, or N and Q, are computed for each item and query. A number beyond half's range gives
 * infinities, then NaN, and NaN counts as no bound. So do hidden units and logits so large that squares overflow.
 */
#ifndef KERNELS_CUDA_MOL_BOUNDS_H
#define KERNELS_CUDA_MOL_BOUNDS_H

#include "kernels/cuda/admitted.h"
#include "kernels/cuda/lists.h"
#include "kernels/cuda/mol_halves.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/mol.h"

/* The largest norm of an item's component: components are normalised and then rounded once. */
#define MOL_BOUND_NORM_MAX 1.001f

/* The cross gate's weights on the device, in the kernel's order, and the factors of the proof. */
struct mol_half_gate;

/* Build the gate and upload it. Sets *out to NULL if the model has no bounds: its shape is not covered (P_q 8, P_x 4 or
 * 8, d_P 16, 32, 64 or 128, hidden 128 are), its weights are too large, or this device's shared memory is too small.
 * Returns ERR_MEMORY or ERR_DEVICE on failure. Blocks: until the weights are on the device. */
err_t mol_half_gate_open(const struct mol_shape *shape, const struct mol_gate *gate, struct device_stream *stream,
                         struct mol_half_gate **out);
void mol_half_gate_close(struct mol_half_gate **gate);

/* All pointers but the gate's are device pointers. */
struct mol_bounds_input {
  const struct mol_half_gate *gate;
  const uint8_t *present; /* [capacity]; items of absent slots are undefined */
  struct mol_halves items;
  const float *query_components; /* [n_queries][P_q][d_P] */
  const float *query_gates;      /* [n_queries][L], the gate of pair (n, m) at n * P_x + m */
  size_t n_queries;
  unsigned n_blocks; /* blocks that the device runs at a time */
  struct admitted_words admitted;
};

/* Maxima per tile of 64 slots: each covers 16 adjacent items of the tile. */
enum { MOL_BOUNDS_MAXIMA = 4 };

/* Tile t < n_tiles is the 64 slots from t * stride * 64 on, below n_slots. Set maxima[q][t][g] to the largest lower
 * bound on the score of an item that query q admits among the tile's items 16 g to 16 g + 15; -inf if there is none.
 * Returns ERR_DEVICE on failure. */
err_t mol_bounds_maxima(struct device_stream *stream, const struct mol_bounds_input *input, size_t n_slots,
                        size_t stride, size_t n_tiles, float *maxima);

/* Append to list q the items in the n slots from `first` on that query q admits and that steps 10 and 11 of the proof
 * do not place below floors[q]. That includes all whose score reaches floors[q]. Each entry's score is +inf. first is a
 * multiple of 64. Returns ERR_DEVICE on failure. */
err_t mol_bounds_append(struct device_stream *stream, const struct mol_bounds_input *input, size_t first, size_t n,
                        const float *floors, const struct device_lists *lists);

/* Bound every entry of list q for query q: upper bounds go to lists->scores, lower bounds to lowers
 * [n_lists][capacity]; unknown bounds are +inf and -inf. All entries must be present slots. Returns ERR_DEVICE on
 * failure. */
err_t mol_bounds_lists(struct device_stream *stream, const struct mol_bounds_input *input,
                       const struct device_lists *lists, float *lowers);

#ifdef __cplusplus
}
#endif

#endif
