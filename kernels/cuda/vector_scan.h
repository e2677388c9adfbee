/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on inner products of vectors on tensor cores: maxima of lower bounds, and what an upper bound lets pass.
 *
 * For a query q and an item b, both of n numbers, q = t q16 + d and b = s b16 + e with powers of two s and t
 * (vector_derive.h). The score is p = <q, b> + r in real numbers, |r| <= tail of q * tail of b, computed in double and
 * rounded once to f32. The bounds are, in f32 and fused,
 *
 *   upper = A (s t) + slack     lower = A (s t) - slack     A = the tensor core's sum of q16_k b16_k
 *   slack = |d| N_b + (N_q E_b + (tail tail + 2^-100))
 *
 * where N_b = |b|, N_q = |t q16|, E_b = |e| + loss (|b| + |e|), each times 1 + 2^-20 and rounded up. Why they hold,
 * with u = 2^-24:
 *
 *   1. <q, b> - <t q16, s b16> = <d, b> + <t q16, e>, at most |d| |b| + |t q16| |e| by Cauchy-Schwarz.
 *   2. Products of halves are exact. A step loses at most h = MMA_ERROR of the sizes that it adds. The sizes of
 *      all products are at most P = |q16| |b16|, so that m steps lose m h P (1 + h)^m at most; m <= 4096 makes the last
 *      factor less than 1.02. Hence |A s t - <t q16, s b16>| <= 1.0625 m h |t q16| (|b| + |e|).
 *   3. The score as it is computed differs from p by at most 2^-41 |q| |b| (sums of 2^16 numbers in double, 32 at a
 * time) and u |p|, and the bound is rounded by u (|A s t| + slack). With |q| <= |t q16| + |d|, |b| and |s b16| at most
 *      |b| + |e|, all of this is at most
 *        4 u |t q16| (|b| + |e|) + 2 u |d| |b| + 2 u tail tail + u slack.
 *      The first term is below the 2^-20 (|b| + |e|) |t q16| that loss = 2^-20 + 1.0625 m h has for it. The others,
 *      and the three roundings of the slack, are below 8 u = 2^-21 of terms that are there with a factor 1 + 2^-20.
 *   4. Underflow: s t is rounded where it is below 2^-149, and A < 2^19; each step of f32 loses 2^-149 at most, and so
 *      does the score. Together less than 2^-100.
 *   5. Overflow: s t is below 2^127, so upper is +inf only where the real sum is beyond f32 or a size is infinite. A
 *      bound that is not a number lets the item pass, and a lower bound that is not below +inf counts for nothing.
 *
 * Queries may have fewer slices than items (queries.stride): the items' numbers behind are not read, as if the query
 * had zeros there. All that was said holds: norms of parts are smaller.
 */
#ifndef KERNELS_CUDA_VECTOR_SCAN_H
#define KERNELS_CUDA_VECTOR_SCAN_H

#include "kernels/cuda/lists.h"
#include "kernels/cuda/vector_derive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What both scans read, of the device. */
struct vector_scan_input {
  const uint8_t *present;     /* [slots] */
  struct vector_halves items; /* by slot, whole tiles of 64 */
  struct vector_halves queries;
  size_t n_queries;
  unsigned n_blocks; /* that the device runs at a time */
};

/* maxima[q][t] = the largest lower bound on the score of a present item of slots t * stride * 64 and the 63 behind it,
 * below n_slots, for t < n_tiles; -inf where there is none. Both return ERR_DEVICE. */
err_t vector_scan_maxima(struct device_stream *stream, const struct vector_scan_input *input, size_t n_slots,
                         size_t stride, size_t n_tiles, float *maxima);

/* Append the present items of slots first (a multiple of 64) to first + n whose upper bound reaches floors[q] to list
 * q. Their scores are left open. */
err_t vector_scan_append(struct device_stream *stream, const struct vector_scan_input *input, size_t first, size_t n,
                         const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
