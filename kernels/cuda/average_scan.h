/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of averaged vectors on the device: the dot product that TopKAvg ranks by (MoL paper, section 3.2), bounded from
 * both sides by a product in half precision.
 *
 * How far the product is from D, the dot product of an item's average a and a query's b in f32 as average_score.h has
 * it. Norms are Euclidean; a', b' are a, b in half precision; R >= |a - a'| is the item's residual, B >= |b| and
 * S >= |b - b'| the query's, all rounded up; n is the dimension, padded.
 *
 * 1. <a, b> - <a', b'> = <a - a', b> + <a', b - b'>, so that it is at most R B + |a'| S (Cauchy-Schwarz).
 * 2. Components have a norm of 1 at most, and of 2^-20 more for rounding; so has a mean of up to 256 of them, and 2^-14
 *    more for its own. Rounding to half adds at most 2^-11 of it, and sqrt(n) 2^-25 where numbers are subnormal, n <=
 *    16384: |a'| <= A = 1 + 2^-9. A number beyond half's range is not possible.
 * 3. The tensor core adds n products to a sum, 16 at a time within MMA_ERROR < 16 * 2^-21 of the sizes, and no
 *    sum of sizes is above M = A (B + S), but for the errors before it, which add less than 2^-7 of it: n 2^-21 M (1 +
 *    2^-7). D itself, n fused steps in f32, is off by n 2^-24 M; the bound's own arithmetic by less than 2^-23 M. All
 *    together is below (n + 8) 1.5 * 2^-21 M.
 * 4. Underflow anywhere adds less than 2^-100.
 *
 * So |D - product| <= R B + (A S + (n + 8) 1.5 * 2^-21 A (B + S) + 2^-100): one fused step for each pair. Where
 * anything is NaN, so are both bounds: the upper one is then taken to reach every floor, the lower one to be nothing.
 */
#ifndef KERNELS_CUDA_AVERAGE_SCAN_H
#define KERNELS_CUDA_AVERAGE_SCAN_H

#include "kernels/cuda/lists.h"
#include "kernels/cuda/mol_halves.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What both scans read, of the device. Arrays of items have whole tiles of 64 slots. */
struct average_scan_input {
  const uint8_t *present;
  struct mol_halves items;
  size_t dim;           /* d_P */
  const float *queries; /* averages [n_queries][d_P] */
  size_t n_queries;
  unsigned n_blocks; /* that the device runs at a time */
};

/* Largest lower bounds that a tile of 64 slots reports, each of its own items. */
enum { AVERAGE_SCAN_MAXIMA = 8 };

/* maxima[q][t][g] = the largest lower bound on the dot product of a present item of slots t * stride * 64 + g, and
 * every 8th behind it in that tile, below n_slots, for t < n_tiles; -inf where there is none. Both return ERR_DEVICE.
 */
err_t average_scan_maxima(struct device_stream *stream, const struct average_scan_input *input, size_t n_slots,
                          size_t stride, size_t n_tiles, float *maxima);

/* Append the present items of slots first to first + n whose upper bound reaches floors[q] to list q; scores are left
 * open. first is a multiple of 64. */
err_t average_scan_append(struct device_stream *stream, const struct average_scan_input *input, size_t first, size_t n,
                          const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
