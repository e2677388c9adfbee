/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products <f_qn, g_xm> of every pair of components of many queries with all items, in half precision, and how far
 * they may be off (MoL paper, Algorithms 1 and 2: TopKDotProduct for each pair).
 *
 * A list is a component of a query, called a row here, and a component of items: list (m - first_component) * n_rows +
 * row. The exact dot product is the processor's: the sum over k, rising, of f_k g_k, fused, in f32.
 *
 * Bounds. Let f', g' be the rounded vectors, r >= |g - g'| the largest residual of the present items of a tile of 64,
 * G = 1 + (d + 8) 2^-23 what |g| does not exceed, u = 2^-24, s the steps of the tensor core that a product takes.
 *
 * 1. |<f, g> - <f', g'>| <= |f - f'| |g| + |f'| |g - g'| <= |f - f'| G + |f'| r (Cauchy-Schwarz).
 * 2. The exact dot product, a sum of d fused steps, is off by at most d u / (1 - d u) sum |f_k g_k| <= 2 d u |f| G.
 * 3. Products of halves are exact in f32. With P = sum |f'_k g'_k| <= |f'| (G + r) and an accumulator that starts from
 *    c, each step is off by at most e = MMA_ERROR of the sizes that it adds, which are at most
 *    (|c| + P) (1 + s e). A sum of 16 products one after another in f32, off by 2^-20, is covered too.
 * 4. With S = (s + 1) e and a row's numbers, rounded up,
 *      norm = |f'| (1 + S) (1 + 2 S),  base = (|f - f'| G + 2 d u |f| G + S |f'| G + 2^-80) (1 + 2 S)
 *    margin = norm r + base covers 1, 2 and 3 for c = 0 with e P to spare, which is more than the roundings of the
 *    margin itself and of its subtraction from the dot product.
 * 5. The test against a floor starts from c = margin + 2 S |floor| - floor: the s e |c| of step 3 and c's own roundings
 *    are below 2 S |floor| + (1 - 1 / (1 + 2 S)) margin. So the sum comes out above 0 (2^-80 keeps it from 0) wherever
 *    the exact dot product reaches the floor, and the sign of the accumulator is the test.
 * 6. A row with a number beyond half's range counts as zeros with an infinite margin: it has no floor, and every item
 *    passes. An item whose residual is not finite passes with its tile. A component that is not finite needs such a
 *    residual.
 *
 * Components of more than MOL_PAIRS_DIM_MAX numbers are not for this: their exact dot products are both bounds.
 */
#ifndef KERNELS_CUDA_MOL_PAIRS_H
#define KERNELS_CUDA_MOL_PAIRS_H

#include "kernels/cuda/lists.h"
#include "kernels/cuda/mol_halves.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOL_PAIRS_DIM_MAX = 128, MOL_PAIRS_GROUP = 32 };

/* What a row's margin is made of: norm * r + base. */
struct mol_pairs_margin {
  float norm, base;
};

/* Rows of queries, of the device. */
struct mol_pairs_rows {
  size_t n;
  const float *vectors;             /* [n][d] */
  uint16_t *halves;                 /* [n][d rounded up to whole MOL_PAIRS_GROUP, or 128 beyond 64] */
  struct mol_pairs_margin *margins; /* [n] */
};

/* Numbers of a row in halves. */
size_t mol_pairs_half_dim(size_t dim);

struct mol_pairs_input {
  struct device_rows items; /* the components come first in a row, [P_x][d] */
  struct mol_halves halves;
  size_t n_item_components; /* P_x */
  size_t component_dim;     /* d */
  struct mol_pairs_rows rows;
  size_t first_component, n_components; /* of items, that lists are for */
  unsigned n_blocks;                    /* that the device runs at a time */
};

/* Fill halves and margins of rows. */
err_t mol_pairs_prepare(struct device_stream *stream, const struct mol_pairs_rows *rows, size_t dim);

/* maxima[list][t] = the largest lower bound on the exact dot product of a present item of slots t * stride * 64 and the
 * 63 behind it, below n_slots, for t < n_tiles; -inf where there is none. All return ERR_DEVICE. */
err_t mol_pairs_maxima(struct device_stream *stream, const struct mol_pairs_input *input, size_t n_slots, size_t stride,
                       size_t n_tiles, float *maxima);

/* Append the present items below n_slots whose upper bound reaches floors[list] to that list. Scores are left open. */
err_t mol_pairs_append(struct device_stream *stream, const struct mol_pairs_input *input, size_t n_slots,
                       const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
