/* SPDX-License-Identifier: Apache-2.0 */
/* A layer's weights in two parts of bf16 (8 significant bits), as tiles of bf16 multiply them.
 *
 * A number x is high + low + rest, |low| <= 2^-8 |x|, |rest| <= 2^-16 |x|. Of a product x w the parts high high, high
 * low and low high are summed in f32; what is left out is at most 3 * 2^-16 |x w|, a little more in second order. No
 * order of summation in a tile is supposed: the two manuals of the instruction give two. Denormal numbers, which tiles
 * take for zeros, matter less than 2^-80 where weights are moderate (mol_reduced_gate.c).
 */
#ifndef KERNELS_BF16_LAYER_H
#define KERNELS_BF16_LAYER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
  BF16_TILE_ROWS = 16,
  BF16_TILE_PAIRS = 16, /* pairs of bf16 in a row of a tile */
  BF16_PAD = 32,        /* what layers' sizes are rounded up to: whole tiles, as inputs and as outputs */
};

/* Of the sizes of a product's terms, how much is left out at most, but for f32. */
#define BF16_REST 0x1.8p-15

static inline size_t bf16_pad(size_t n)
{
  return (n + BF16_PAD - 1) / BF16_PAD * BF16_PAD;
}

/* As tiles read them, an output a row; zeros where sizes are padded. */
struct bf16_layer {
  size_t n_in, n_out;   /* padded */
  uint16_t *high, *low; /* bf16 [n_out][n_in] */
};

/* w [n_out][n_in]. Returns ERR_MEMORY; `*out` may then be given to bf16_layer_fini(). */
err_t bf16_layer_init(const float *w, size_t n_in, size_t n_out, struct bf16_layer *out);
void bf16_layer_fini(struct bf16_layer *layer);

/* A number's bits rounded to bf16's precision, halves away from zero; the high 16 of them are the number in bf16. */
static inline uint32_t bf16_round(uint32_t bits)
{
  return (bits + 0x8000u) & 0xffff0000u;
}

#endif
