/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of averaged vectors on the device. TopKAvg ranks by their dot product (MoL paper, section 3.2); a product in
 * half precision bounds it from both sides.
 *
 * The proof bounds the distance between that product and D. D is the dot product, in f32 and as average_score.h
 * computes it, of an item's average a and a query's average b. Norms are Euclidean; a' and b' are a and b in half
 * precision. The query has B >= |b| and S >= |b - b'|, rounded up. n is the dimension, padded to whole pieces of 32.
 *
 * 1. <a, b> - <a', b'> = <a - a', b> + <a', b - b'>. By Cauchy-Schwarz this is at most |a - a'| B + |a'| S.
 * 2. A component's norm is at most 1, plus 2^-20 for rounding. The same holds for a mean of up to 256 of them, plus
 *    2^-14 for the mean's own rounding. Rounding to half adds at most 2^-11 of the norm, plus sqrt(n) 2^-25 for
 *    subnormal numbers, with n <= 16384. Hence |a - a'| <= R = 2^-11 (1 + 2^-6) and |a'| <= A = 1 + 2^-9, and no number
 *    can exceed half's range. An item's own |a - a'| is smaller, but to read it would take a fifth of the scan's time,
 *    and it would shorten lists by a few percent.
 * 3. The tensor core adds n products to a sum, 16 at a time. Each step is off by at most MMA_ERROR < 16 * 2^-21 of the
 *    magnitudes that it adds. The sum of magnitudes is at most M = A (B + S), apart from earlier errors, which add
 *    less than 2^-7 of it. So the error is at most n 2^-21 M (1 + 2^-7). D itself, n fused steps in f32, is off by
 *    n 2^-24 M, and the bound's own arithmetic by less than 2^-23 M. The sum of all these errors is below c M, with
 *    c = (n + 8) 1.5 * 2^-21.
 * 4. Subnormal halves lose at most U = n / 16 MMA_LOST max(|a'|, |b'|) more. 2 + B + S in place of the maximum leaves
 *    room for underflow anywhere else, which adds less than 2^-100. So |D - product| <= E = R B + A S + c M + U.
 * 5. The scan that compares with a floor F adds the products to a start s = G - F, and an item passes if the sum is not
 *    negative. The start is one more magnitude in each step, so it adds c |s| <= c (|F| + G) to the error. Hence
 *    G >= E + c |F| + c G is enough; G = (E + c |F|) (1 + 2 c) is, because c < 1/2.
 *
 * E and G are rounded up by 2^-12, which exceeds the errors of their own sums. So the sum of an item with D >= F is
 * above zero, not only not below. If E or G is not finite, all items pass, and the lower bound is -inf. An item with
 * NaN may pass or not: its D is NaN, which is nobody's candidate.
 */
#ifndef KERNELS_CUDA_AVERAGE_SCAN_H
#define KERNELS_CUDA_AVERAGE_SCAN_H

#include "kernels/cuda/admitted.h"
#include "kernels/cuda/lists.h"
#include "kernels/cuda/mol_halves.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Input of both scans: device pointers. Item arrays are padded to whole tiles of 64 slots. */
struct average_scan_input {
  const uint8_t *present;
  struct mol_halves items;
  size_t dim;           /* d_P */
  const float *queries; /* averages [n_queries][d_P] */
  size_t n_queries;
  unsigned n_blocks; /* blocks that the device runs at a time */
  struct admitted_words admitted;
};

/* Maxima per tile of 64 slots: each covers 16 items of the tile. */
enum { AVERAGE_SCAN_MAXIMA = 4 };

/* Tile t < n_tiles is the 64 slots from t * stride * 64 on, below n_slots. Set maxima[q][t][g] to the largest lower
 * bound on a dot product among the tile's items 2 g, 2 g + 1, 2 g + 8, 2 g + 9, 2 g + 16, ... that query q admits; -inf
 * if there are none. Both functions return ERR_DEVICE on failure. */
err_t average_scan_maxima(struct device_stream *stream, const struct average_scan_input *input, size_t n_slots,
                          size_t stride, size_t n_tiles, float *maxima);

/* Append to list q the items in the n slots from `first` on that query q admits and whose upper bound reaches
 * floors[q]. Their scores in the list are undefined. first is a multiple of 64. */
err_t average_scan_append(struct device_stream *stream, const struct average_scan_input *input, size_t first, size_t n,
                          const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
