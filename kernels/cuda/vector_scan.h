/* SPDX-License-Identifier: Apache-2.0 */
/* Scans that bound inner products of vectors on tensor cores. One finds the largest lower bound of each tile, the other
 * appends the items whose upper bound reaches a floor.
 *
 * A query q and an item b have n numbers each. q = t q16 + d and b = s b16 + e, with powers of two s and t
 * (vector_derive.h). In real numbers the score is p = <q, b> + r with |r| <= tail of q * tail of b. It is computed in
 * double and rounded once to f32. The bounds, computed in f32 with fused steps, are
 *
 *   upper = A (s t) + slack     lower = A (s t) - slack     A = the tensor core's sum of q16_k b16_k
 *   slack = |d| N_b + (N_q E_b + (tail tail + 2^-100))
 *
 * with N_b = |b|, N_q = |t q16| and E_b = |e| + loss (|b| + |e|), each times 1 + 2^-20 and rounded up.
 *
 * The proof, with u = 2^-24:
 *
 *   1. <q, b> - <t q16, s b16> = <d, b> + <t q16, e>. By Cauchy-Schwarz this is at most |d| |b| + |t q16| |e|.
 *   2. Products of halves are exact. A step loses at most h = MMA_ERROR of the magnitudes that it adds. All products'
 *      magnitudes add up to at most P = |q16| |b16|. So m steps lose at most m h P (1 + h)^m, and m <= 4096 keeps the
 *      last factor below 1.02. Subnormal halves lose at most m MMA_LOST max(|q16|, |b16|) more, which is below
 *      2^-13 m h |q16| |b16|, since both norms are at least 1; where a clamped scale leaves a smaller one, 1 takes its
 *      place in N_q and E_b. Hence |A s t - <t q16, s b16>| <= 1.0625 m h |t q16| (|b| + |e|).
 *   3. The computed score differs from p by at most 2^-41 |q| |b| (sums of 2^16 numbers in double, 32 at a time) plus
 *      u |p|. The bound is rounded by u (|A s t| + slack). |q| <= |t q16| + |d|, and |b| and |s b16| are at most
 *      |b| + |e|. So all of this is at most
 *        4 u |t q16| (|b| + |e|) + 2 u |d| |b| + 2 u tail tail + u slack.
 *      The first term is below 2^-20 (|b| + |e|) |t q16|, for which loss = 2^-20 + 1.0625 m h has room. The other
 *      terms and the three roundings of the slack are below 8 u = 2^-21 of terms that have a factor of 1 + 2^-20 in
 *      the slack.
 *   4. Underflow: s t is rounded below 2^-149, and A < 2^19. Each step of f32 loses at most 2^-149, and so does the
 *      score. Together this is less than 2^-100.
 *   5. Overflow: s t is below 2^127. So upper is +inf only if the real sum exceeds f32's range or a size is infinite.
 *      If a bound is NaN the item passes, and a lower bound that is not below +inf is ignored.
 *
 * Queries may have fewer slices than items (queries.stride). The items' later numbers are then not read, as if the
 * query had zeros there. The proof still holds, because norms of parts are smaller.
 */
#ifndef KERNELS_CUDA_VECTOR_SCAN_H
#define KERNELS_CUDA_VECTOR_SCAN_H

#include "kernels/cuda/admitted.h"
#include "kernels/cuda/lists.h"
#include "kernels/cuda/vector_derive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Input of both scans: device pointers. */
struct vector_scan_input {
  const uint8_t *present;     /* [slots] */
  struct vector_halves items; /* by slot, padded to whole tiles of 64 */
  struct vector_halves queries;
  size_t n_queries;
  unsigned n_blocks; /* blocks that the device runs at a time */
  struct admitted_words admitted;
};

/* Tile t < n_tiles is the 64 slots from t * stride * 64 on, below n_slots. Set maxima[q][t] to the largest lower bound
 * on the score of an item of the tile that query q admits; -inf if there is none. Both functions return ERR_DEVICE on
 * failure. */
err_t vector_scan_maxima(struct device_stream *stream, const struct vector_scan_input *input, size_t n_slots,
                         size_t stride, size_t n_tiles, float *maxima);

/* Append to list q the items in the n slots from `first` on that query q admits and whose upper bound reaches
 * floors[q]. Each entry's score is its upper bound, +inf if that is not a number. first is a multiple of 64. */
err_t vector_scan_append(struct device_stream *stream, const struct vector_scan_input *input, size_t first, size_t n,
                         const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
