/* SPDX-License-Identifier: Apache-2.0 */
/* A layer's weights as 16-bit integers with one scale per output, for instructions that multiply pairs of 16-bit
 * integers and add in 32 bits.
 *
 * Inputs are integers of INT16_LAYER_BITS bits and a sign, with one scale per item. Weights have as many bits as the
 * 32-bit sums allow, so sums are exact. The errors are known: half a unit for an input; for a weight, the
 * `rest` of int16_layer_init().
 */
#ifndef KERNELS_INT16_LAYER_H
#define KERNELS_INT16_LAYER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
  INT16_LAYER_BITS = 13,
  INT16_LAYER_MAX = (1 << INT16_LAYER_BITS) - 1,
  INT16_LAYER_OUTPUTS = 8, /* outputs whose weights are interleaved */
};

/* Round a number of outputs up to whole groups. */
static inline size_t int16_layer_pad(size_t n_out)
{
  return (n_out + INT16_LAYER_OUTPUTS - 1) / INT16_LAYER_OUTPUTS * INT16_LAYER_OUTPUTS;
}

struct int16_layer {
  size_t n_pairs;   /* pairs of inputs, rounded up */
  size_t n_out;     /* padded */
  int16_t *weights; /* [n_out / INT16_LAYER_OUTPUTS][n_pairs][INT16_LAYER_OUTPUTS][2]; padding is zeros */
  float *units;     /* [n_out]: the value that the integer 1 stands for */
};

/* Round the weights w [n_out][n_in], n_in at most 2^16, to integers. rest [n_out][n_in] receives w minus the values of
 * the integers. Returns ERR_MEMORY; int16_layer_fini() accepts `*out` even then. */
err_t int16_layer_init(const float *w, size_t n_in, size_t n_out, double *rest, struct int16_layer *out);
void int16_layer_fini(struct int16_layer *layer);

#endif
