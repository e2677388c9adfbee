/* SPDX-License-Identifier: Apache-2.0 */
/* A layer's weights, each as the sum of two bf16 numbers (8 significant bits), for AMX tiles.
 *
 * A number x = high + low + rest, with |low| <= 2^-8 |x| and |rest| <= 2^-16 |x|. Of a product x w, three parts are
 * summed in f32: high high, high low and low high. The others are at most 3 * 2^-16 |x w|, plus a little in second
 * order. The proof assumes no order of summation in a tile: the instruction's two manuals give different orders. Tiles
 * treat denormal numbers as zeros; with the weights that mol_reduced_gate.c accepts, that changes less than 2^-80.
 */
#ifndef KERNELS_BF16_LAYER_H
#define KERNELS_BF16_LAYER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
  BF16_TILE_ROWS = 16,
  BF16_TILE_PAIRS = 16, /* pairs of bf16 in a row of a tile */
  BF16_PAD = 32,        /* sizes are rounded up to it: whole tiles of inputs and of outputs */
};

/* Error of a product, as a share of the sum of its terms' |x w|, without the rounding in f32. */
#define BF16_REST 0x1.8p-15

static inline size_t bf16_pad(size_t n)
{
  return (n + BF16_PAD - 1) / BF16_PAD * BF16_PAD;
}

/* One output per row, as tiles read them. Padding is zeros. */
struct bf16_layer {
  size_t n_in, n_out;   /* padded */
  uint16_t *high, *low; /* bf16 [n_out][n_in] */
};

/* Split the weights w [n_out][n_in]. Returns ERR_MEMORY; bf16_layer_fini() accepts `*out` even then. */
err_t bf16_layer_init(const float *w, size_t n_in, size_t n_out, struct bf16_layer *out);
void bf16_layer_fini(struct bf16_layer *layer);

/* Round the bits of a float to bf16's precision, ties away from zero. The high 16 bits are the number in bf16. */
static inline uint32_t bf16_round(uint32_t bits)
{
  return (bits + 0x8000u) & 0xffff0000u;
}

#endif
