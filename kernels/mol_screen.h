/* SPDX-License-Identifier: Apache-2.0 */
/* A model's cross gate in small integers, for mol_screen() (kernels.h), and the proof that a screened item cannot reach
 * the threshold.
 *
 * At levels without tiles of bf16 (mol_screen_bf16.h), mol_screen() computes everything from integers: components of 15
 * and 16 bits, W1 in 16 bits, hidden units and W2 in 8 bits. All sums of products are exact. For any x of mol_score(),
 * x~ is its value here. Norms are Euclidean; those of matrices are spectral, or Frobenius where _F says so. u = 2^-24.
 * One factor, SECOND_ORDER, covers all terms of second order.
 *
 * 1. F and G are the components of query and item as matrices, so l = F G^T / tau. With dF and dG what rounding
 *    changes, F G^T - F~ G~^T = dF G^T + F~ dG^T. So |dF G^T|_F <= |dF|_F |G|, and |F~ dG^T|_F <= |F~| |dG|_F. |dF|_F
 *    is measured, |G| <= sqrt(P_x), |F~|^2 is at most the largest row sum of |F~ F~^T|, and a number of dG is at most
 *    SCREEN_ITEM_REST. The logits are then rounded to multiples of a unit. e_l bounds |l - l~|, for all items of a
 *    query. The rounding of mol_score()'s logits is part of it.
 * 2. y - y~ = W1 (l - l~) + (W1 - W1~) l~ + r: r has the rounding of y~ to a multiple of a unit, and of mol_score()'s
 *    own sums. |l~| is at most |F~| |G~| / tau.
 * 3. SiLU is made of straight lines. With the rounding to integers, each number is off by at most activation_error.
 *    Hidden units are rounded to bytes, with a scale for each item; the norm of that error, `lost`, is measured.
 * 4. SiLU's slope lies within 0.5 +- 0.6. So, as in steps 3 and 4 of mol_reduced_gate.h, |w - w~| is at most (0.5 |W2
 *    W1| + 0.6 |W2| |W1|) e_l + |W2| (1.1 (|W1 - W1~| |l~| + |r|) + sqrt(H) activation_error + lost) + |W2 - W2~| |h~ +
 *    h_0|, and the rounding of two sums. Bytes hold h + h_0, which is never negative.
 * 5. z = u v + w is rounded as in mol_score(). A weight is E = exp(SiLU(z)). If any SiLU(z) is above about 60, the item
 *    passes. So |z| times SiLU's slope is at most 100, and the rounding of z changes SiLU by at most 200 u.
 * 6. The logarithms of the weights, up to a constant that all share, then have an error vector of norm at most delta =
 *    1.1 |w - w~| + SCREEN_SILU_RELATIVE |s| + (SCREEN_SILU_ERROR + SCREEN_EXP_ERROR + 512 u) sqrt(L), with s =
 *    SiLU(z). SiLU is at least -0.28, so |s| <= sqrt(L) max(0.5, largest s).
 * 7. Let T be a score, t_p = E_p (l~_p - T), N = sum t_p, and Q+ and Q- the sums of the squares of positive and of
 *    negative t_p. mol_score()'s weights are c E_p exp(d_p) with |d| <= delta. Where t_p > 0, (exp(d_p) - 1) t_p <=
 *    (exp(delta) - 1) / delta |d_p| t_p, because exp is convex; where t_p < 0 it is at most |d_p t_p|. By
 *    Cauchy-Schwarz sum exp(d_p) t_p <= N + sqrt((exp(delta) - 1)^2 Q+ + delta^2 Q-). If that is negative, the mean of
 *    l~ under mol_score()'s weights is below T.
 * 8. A logit of odd number is read with less than a unit added. So it differs from l~ by at most logit_error, and
 *    mol_score()'s quotient of sums is off by at most (2 L + 4) u max |l|. T is the threshold minus both. The sum N is
 *    off by at most (L + 4) u sum |t_p|, and sum |t_p| <= sqrt(L (Q+ + Q-)): a part of delta, too.
 */
#ifndef KERNELS_MOL_SCREEN_H
#define KERNELS_MOL_SCREEN_H

#include "kernels/mol.h"
#include "kernels/mol_screen_bf16.h"

enum {
  SCREEN_OUTPUTS = 8,   /* outputs whose weights are interleaved */
  SCREEN_GROUP = 4,     /* hidden units in a group of bytes */
  SCREEN_SEGMENTS = 32, /* straight lines that SiLU is made of, for |y| up to SCREEN_SEGMENTS / 4 */
  SCREEN_BYTE_BITS = 7, /* bits that are lost when a hidden unit is rounded to a byte */
  SCREEN_SHIFT = 30,    /* weights are divided by 2^30: squares of large ones stay finite */
};

/* Scales that turn numbers of at most 1 into 16 and 15 bits; the upper half of a product of the two is a logit. */
#define SCREEN_ITEM_SCALE  32000.0f
#define SCREEN_QUERY_SCALE 16000.0f

/* The largest rounding error of an item's number. */
#define SCREEN_ITEM_REST (0.51 / 32000)

/* Largest difference from mol_score()'s exp, as a share of the result. With e = exp(-z), an error of e by a share x
 * changes SiLU(z) = z / (1 + e) by x |z| e / (1 + e)^2 <= 0.23 x in first order. The reciprocal adds a share of SiLU.
 */
#define SCREEN_EXP_ERROR     0x1p-9
#define SCREEN_SILU_ERROR    0x1p-11
#define SCREEN_SILU_RELATIVE 0x1p-13

/* Inputs of W1 and outputs of W2 are sorted by item component; an item component's P_q numbers are padded to an even
 * count. */
struct mol_screen {
  size_t n_pairs;    /* of logits */
  size_t n_hidden;   /* rounded up to SCREEN_OUTPUTS */
  size_t n_out;      /* rounded up to SCREEN_OUTPUTS */
  int16_t *w1;       /* [n_hidden / SCREEN_OUTPUTS][n_pairs][SCREEN_OUTPUTS][2] */
  int32_t *b1;       /* [n_hidden], plus half a unit of y */
  int8_t *w2;        /* [n_out / SCREEN_OUTPUTS][n_hidden / SCREEN_GROUP][SCREEN_OUTPUTS][SCREEN_GROUP]; the
                        units of a group in the order 0, 2, 1, 3 */
  int16_t *w2_pairs; /* [n_out / SCREEN_OUTPUTS][n_hidden / 2][SCREEN_OUTPUTS][2]: the same numbers, for levels
                        without products of bytes */
  float *units, *b2; /* [n_out] value of the integer 1 in w2; bias of h~ + h_0 */
  int32_t *logits;   /* [n_out] number p of the logit, or -1: padding */
  int y_bits;        /* y~ is a multiple of 2^-y_bits */
  int h_bits;        /* h~ is a multiple of 2^-h_bits; |y| < 2^(15 - h_bits) or the item passes */
  double h_zero;     /* h_0: larger than -SiLU by what h~ may be off */
  int h_slack;       /* no integer of h~ + h_0 is above that of |y~| plus this */
  float logit_unit;  /* value of the integer 1 of a logit */
  int16_t slopes[SCREEN_SEGMENTS], offsets[SCREEN_SEGMENTS]; /* SiLU(y) + h_0 - y / 2 as lines of |y| */

  /* Factors of delta. */
  double per_logit_error, per_logit, constant;
  float per_lost, per_hidden, per_gate;

  struct mol_screen_bf16 bf16; /* the same gate for tiles of bf16 */
};

/* A layer's weights and what is known of them. */
struct mol_screen_layer {
  const double *weights; /* [n_out][n_in] */
  const float *bias;
  double spectral, frobenius;
};

/* Make a screen; `through` is 0.5 |W2 W1| + 0.6 |W2| |W1|. out->w1 stays NULL if the weights do not fit. Returns
 * ERR_MEMORY; mol_screen_fini() accepts `*out` even then. */
err_t mol_screen_init(const struct mol_shape *shape, const struct mol_screen_layer layers[2], double through,
                      struct mol_screen *out);
void mol_screen_fini(struct mol_screen *screen);

#endif
