/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding a layer's weights to 16-bit integers. */
#include "kernels/int16_layer.h"

#include <math.h>

#include "base/mem.h"

/* Limit on the sum of one output's |weights|, as integers. With inputs up to INT16_LAYER_MAX, sums stay within 32
 * bits. */
enum { WEIGHTS_MAX = INT32_MAX / INT16_LAYER_MAX };

/* Return the largest factor for an output's weights that keeps their integers within 16 bits and their sums within 32;
 * 0 if all weights are 0. */
static double scale_of(const float *weights, size_t n)
{
  double sum = 0, largest = 0;

  for (size_t k = 0; k < n; k++) {
    sum += fabs((double)weights[k]);
    largest = fmax(largest, fabs((double)weights[k]));
  }
  return sum > 0 ? fmin((WEIGHTS_MAX - (double)n / 2) / sum, INT16_MAX / largest) : 0;
}

err_t int16_layer_init(const float *w, size_t n_in, size_t n_out, double *rest, struct int16_layer *out)
{
  out->n_pairs = (n_in + 1) / 2;
  out->n_out = int16_layer_pad(n_out);
  TRY(mem_array(out->n_out * out->n_pairs * 2, sizeof *out->weights, &out->weights));
  TRY(mem_array(out->n_out, sizeof *out->units, &out->units));
  for (size_t o = 0; o < n_out; o++) {
    const float *from = w + o * n_in;
    int16_t *to =
        out->weights + (o / INT16_LAYER_OUTPUTS * out->n_pairs * INT16_LAYER_OUTPUTS + o % INT16_LAYER_OUTPUTS) * 2;
    double scale = scale_of(from, n_in);
    out->units[o] = scale > 0 ? (float)(1 / scale) : 0;
    for (size_t k = 0; k < n_in; k++) {
      double number = rint((double)from[k] * scale);
      to[k / 2 * INT16_LAYER_OUTPUTS * 2 + k % 2] = (int16_t)number;
      rest[o * n_in + k] = (double)from[k] - number * (double)out->units[o];
    }
  }
  return ERR_OK;
}

void int16_layer_fini(struct int16_layer *layer)
{
  mem_free(&layer->weights);
  mem_free(&layer->units);
}
