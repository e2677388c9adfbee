/* SPDX-License-Identifier: Apache-2.0 */
/* A layer's weights in integers, an output's by a scale of its own, as products of pairs of 16 bits multiply them.
 *
 * Inputs are integers of INT16_LAYER_BITS bits and a sign, each item's by a scale of its own; weights have as many bits
 * as keep the sums within 32. Sums of integers are exact. What is lost is known: half of an input's unit, and of the
 * weights what `rest` of int16_layer_init() says.
 */
#ifndef KERNELS_INT16_LAYER_H
#define KERNELS_INT16_LAYER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
  INT16_LAYER_BITS = 13,
  INT16_LAYER_MAX = (1 << INT16_LAYER_BITS) - 1,
  INT16_LAYER_OUTPUTS = 8, /* whose weights lie together: outputs are rounded up to that, inputs to pairs */
};

struct int16_layer {
  size_t n_pairs; /* of inputs */
  size_t n_out;   /* rounded up */
  int16_t
      *weights; /* [n_out / INT16_LAYER_OUTPUTS][n_pairs][INT16_LAYER_OUTPUTS][2]; zeros where sizes are rounded up */
  float *units; /* [n_out]: what 1 stands for */
};

/* w [n_out][n_in], n_in at most 2^16; rest [n_out][n_in]: w less the numbers that the integers stand for. Returns
 * ERR_MEMORY; `*out` may then be given to int16_layer_fini(). */
err_t int16_layer_init(const float *w, size_t n_in, size_t n_out, double *rest, struct int16_layer *out);
void int16_layer_fini(struct int16_layer *layer);

#endif
