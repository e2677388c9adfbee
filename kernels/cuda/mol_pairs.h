/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products <f_qn, g_xm> of every pair of components, for many queries and all items. They are computed in half
 * precision, with bounds on their errors (MoL paper, Algorithms 1 and 2: TopKDotProduct for each pair).
 *
 * A component of a query is called a row here. There is one list for each row and item component m, with index
 * (m - first_component) * n_rows + row. The exact dot product is the processor's: the fused sum of f_k g_k in f32,
 * with k ascending.
 *
 * The bounds. f' and g' are the rounded vectors. |g| is at most G = 1 + (d + 8) 2^-23, and |g - g'| of a normalised
 * item at most R = (2^-11 + sqrt(d) 2^-25) (1 + 2^-9), because a half has 11 bits or a unit of 2^-24. u = 2^-24. A
 * product takes s steps of the tensor core.
 *
 * 1. |<f, g> - <f', g'>| <= |f - f'| |g| + |f'| |g - g'| <= |f - f'| G + |f'| R (Cauchy-Schwarz).
 * 2. The exact dot product, a sum of d fused steps, is off by at most d u / (1 - d u) sum |f_k g_k| <= 2 d u |f| G.
 * 3. Let P = sum |f'_k g'_k| <= |f'| (G + R), and let the sum, a half, start from c. Each step is off by at most
 *    e = MMA_HALF_ERROR times the magnitudes that it adds, and these are at most (|c| + P) (1 + s e). Subnormal halves
 *    lose at most MMA_HALF_LOST + MMA_LOST (2 + |f'|) more in each step, because |g'| < 2; let l be s + 1 times that.
 * 4. Let S = (s + 1) e. A row's margin, rounded up, is
 *      (|f'| (1 + S) R + |f - f'| G + 2 d u |f| G + S |f'| G + l) (1 + 2 S)
 *    It covers 1, 2 and 3 for c = 0 and leaves e P to spare. That is more than the rounding errors of the margin itself
 *    and of subtracting it from the dot product.
 * 5. The test against a floor starts from c = margin + (S (1 + 2 S) |floor| - floor), rounded to a half. Together,
 *    that rounding and the error s e |c| (1 + s e) of step 3 are below (s + 1/2 + s^2 e) e |c| < 0.96 S |c|. This is
 *    below S (1 + 2 S) |floor| + (1 - 1 / (1 + 2 S)) margin, because S < 2^-6. So the sum ends above 0 wherever the
 *    exact dot product reaches the floor; l keeps it from being 0. Its sign is the test.
 * 6. A row of norm 1024 or more counts as zeros with an infinite margin: the sums of others fit in halves. It has no
 *    floor, and every item passes. If an item's residual is above R or not a number, its whole tile passes: sums start
 *    from NaN then. An item with a component that is not finite must have such a residual.
 *
 * 7. An estimate is the sum that is tested, less what it started from. It is off by at most
 *    (1 + 2 S) (margin + S |floor|): by 4, and by step 3's error for c. Items of tiles that pass whole have none.
 *
 * This does not apply to components of more than MOL_PAIRS_DIM_MAX numbers: there the exact dot product is both bounds.
 */
#ifndef KERNELS_CUDA_MOL_PAIRS_H
#define KERNELS_CUDA_MOL_PAIRS_H

#include "kernels/cuda/admitted.h"
#include "kernels/cuda/lists.h"
#include "kernels/cuda/mol_halves.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOL_PAIRS_DIM_MAX = 128, MOL_PAIRS_GROUP = 32 };

/* Rows of queries, in device memory. */
struct mol_pairs_rows {
  size_t n;
  const float *vectors;           /* [n][d] */
  uint16_t *halves;               /* [n][mol_pairs_half_dim(d)] */
  float *margins;                 /* [n] */
  struct admitted_words admitted; /* of each row: of the query that it belongs to */
};

/* Numbers per row of mol_pairs_rows.halves: d rounded up to a multiple of MOL_PAIRS_GROUP, or 128 if d > 64. */
size_t mol_pairs_half_dim(size_t dim);

struct mol_pairs_input {
  struct device_rows items; /* a row begins with the components, [P_x][d] */
  struct mol_halves halves;
  size_t n_item_components; /* P_x */
  size_t component_dim;     /* d */
  struct mol_pairs_rows rows;
  size_t first_component, n_components; /* the item components that have lists */
  unsigned n_blocks;                    /* blocks that the device runs at a time */
};

/* Compute the halves and margins of rows. All functions return ERR_DEVICE on failure. */
err_t mol_pairs_prepare(struct device_stream *stream, const struct mol_pairs_rows *rows, size_t dim);

/* Tile t < n_tiles is the 64 slots from t * stride * 64 on, below n_slots. Set s < n_sets <= n_tiles is the tiles s,
 * s + n_sets, s + 2 n_sets and so on. Set maxima[list][s] to the largest lower bound on the exact dot product of an
 * item of the set that the list's row admits; -inf if there is none. */
err_t mol_pairs_maxima(struct device_stream *stream, const struct mol_pairs_input *input, size_t n_slots, size_t stride,
                       size_t n_tiles, size_t n_sets, float *maxima);

/* How many sets mol_pairs_maxima() works on at a time, with so many rows of dim numbers. A multiple of that many sets
 * keeps the device busy. */
size_t mol_pairs_sets_at_a_time(size_t n_rows, size_t dim, unsigned n_blocks);

/* Append to each list the items below n_slots that its row admits and whose upper bound reaches floors[list]. Their
 * scores in the list are estimates of the dot products (step 7), or NaN. */
err_t mol_pairs_append(struct device_stream *stream, const struct mol_pairs_input *input, size_t n_slots,
                       const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
