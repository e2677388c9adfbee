/* SPDX-License-Identifier: Apache-2.0 */
/* A model's cross gate for mol_screen() at levels whose tiles multiply bf16, and the proof that a screened item cannot
 * reach the threshold. It is the proof of mol_screen.h with these steps:
 *
 * 1. Components are integers x = 2^SCREEN_LOW_BITS h + l of 15 bits, in a high byte h and a low one l of
 *    SCREEN_LOW_BITS bits. A logit is the sum of the products h h, h l and l h. So F~ G~^T also loses the products l l:
 *    with L_F and L_G the low bytes, |L_F L_G^T|_F <= |L_F| |L_G|_F. |L_F|^2 is at most the largest row sum of
 *    |L_F L_F^T|; a number of L_G is at most 2^(SCREEN_LOW_BITS - 1). Logits are not rounded further.
 * 2. W1 reads l^, which is l~ rounded to bf16. |l~ - l^| is measured for each item, and |l - l^| <= e_l + |l~ - l^|.
 *    y - y~ = W1 (l - l^) + (W1 - W1^) l^ + r, where r is the rounding of sums: (L + 8) u (|W1|_F |l^| + |b1|), twice.
 *    |l^| is measured for each item.
 * 3. SiLU is made of straight lines, each number off by at most activation_error. h^ is that rounded to bf16:
 *    |h~ - h^| <= (BF16_ERROR + 8 u) |h~|. |h~| is measured. No unit is out of range.
 * 4. |w - w~| is at most (0.5 |W2 W1| + 0.6 |W2| |W1|) (e_l + |l~ - l^|) + |W2| (1.1 (|W1 - W1^| |l^| + |r|) +
 *    sqrt(H) activation_error + (BF16_ERROR + 8 u) |h~|) + |W2 - W2^| |h^|, and the rounding of two sums.
 * 6. SiLU(z) is made of the same lines: activation_error takes the place of SCREEN_SILU_ERROR.
 * 8. The sums use l^. So logit_error also has BF16_ERROR times the largest logit.
 *
 * Tiles add in f32, in an order of their own, and take subnormal numbers for zero, in factors and in sums. W1^ and W2^
 * have none. What is lost of l~, h~ and a sum of n terms is at most n 2^-126, which the constant terms cover.
 */
#ifndef KERNELS_MOL_SCREEN_BF16_H
#define KERNELS_MOL_SCREEN_BF16_H

#include "kernels/mol.h"

enum {
  SCREEN_LOW_BITS = 7,
  SCREEN_TILE_ROWS = 16,   /* outputs of a tile of weights; rows of a tile of a query, high bytes and low ones */
  SCREEN_TILE_INPUTS = 32, /* inputs of a tile of weights; numbers of a component in a tile */
  SCREEN_TILE_QUERY = 8,   /* query components in a tile */
  SCREEN_TILE_BYTES = 2 * SCREEN_TILE_INPUTS, /* of a row */
  SCREEN_BF16_OUTPUTS = 2 * SCREEN_TILE_ROWS, /* outputs are rounded up to a multiple of this */
  SCREEN_LINES = 32,                          /* straight lines that SiLU is made of */
};

/* Distance between the middles of two lines. */
#define SCREEN_LINE_STEP 0.25f

/* Scale that turns an item's numbers of at most 1 into 15 bits; SCREEN_QUERY_SCALE is the query's. */
#define SCREEN_BYTES_SCALE 16000.0f

/* Largest error of rounding to bf16, as a share of the number: half a unit in the last of 8 digits. */
#define BF16_ERROR 0x1p-8

struct mol_screen;
struct mol_screen_layer;

/* Inputs of W1 and outputs of W2 are in the order of struct mol_screen. */
struct mol_screen_bf16 {
  size_t in_tiles[2]; /* tiles of the inputs of each layer */
  size_t n_hidden;    /* rounded up to SCREEN_BF16_OUTPUTS */
  size_t n_out;       /* the same */
  uint16_t *w1, *w2;  /* [outputs / SCREEN_TILE_ROWS][in_tiles][SCREEN_TILE_ROWS][SCREEN_TILE_INPUTS]; w1 of logits in
                         units of logit_unit */
  float *b1, *b2;     /* [n_hidden], [n_out] */
  float logit_unit;   /* value of the integer 1 of a logit */
  float slopes[SCREEN_LINES], offsets[SCREEN_LINES]; /* SiLU(y) - max(y, 0) as lines of |y| */

  /* Factors of delta. */
  double per_logit_error, constant;
  float per_lost, per_logits, per_hidden, per_gate; /* per_lost and per_logits of logits in units */
};

/* What is known of a query: |F~|, the norm of its rounding errors, and the largest such norm of one component. */
struct mol_screen_query_sizes {
  double spectral, rest, worst_rest;
};

/* Make the gate. screen: made from the same layers. Returns ERR_MEMORY; mol_screen_bf16_fini() accepts `*out` even
 * then. */
err_t mol_screen_bf16_init(const struct mol_shape *shape, const struct mol_screen_layer *layers, double through,
                           const struct mol_screen *screen, struct mol_screen_bf16 *out);
void mol_screen_bf16_fini(struct mol_screen_bf16 *gate);

/* Return the floats of scratch that mol_screen() with tiles of bf16 needs: a tile of logits, the hidden units, and the
 * sums of SCREEN_BF16_OUTPUTS outputs. */
size_t mol_screen_bf16_scratch_floats(const struct mol_shape *shape);

/* Return the bytes of a query's tiles. */
size_t mol_screen_bf16_query_bytes(const struct mol_shape *shape);

/* Make a query's tiles from its numbers, as in struct mol_screen_query, and the parts of the error that all its items
 * share. */
void mol_screen_bf16_prepare(const struct mol_shape *shape, const struct mol_screen_bf16 *gate, const int16_t *numbers,
                             const struct mol_screen_query_sizes *sizes, int8_t *tiles, struct mol_screen_errors *out);

#endif
