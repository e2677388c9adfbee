/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting a layer's weights into sums of two bf16 numbers. */
#include "kernels/bf16_layer.h"

#include <string.h>

#include "base/mem.h"

static void split(float x, uint16_t *high, uint16_t *low)
{
  float high_part, low_part;
  uint32_t bits;

  memcpy(&bits, &x, sizeof bits);
  bits = bf16_round(bits);
  memcpy(&high_part, &bits, sizeof high_part);
  *high = (uint16_t)(bits >> 16);
  low_part = x - high_part; /* exact */
  memcpy(&bits, &low_part, sizeof bits);
  *low = (uint16_t)(bf16_round(bits) >> 16);
}

err_t bf16_layer_init(const float *w, size_t n_in, size_t n_out, struct bf16_layer *out)
{
  out->n_in = bf16_pad(n_in);
  out->n_out = bf16_pad(n_out);
  TRY(mem_array(out->n_in * out->n_out, sizeof *out->high, &out->high));
  TRY(mem_array(out->n_in * out->n_out, sizeof *out->low, &out->low));
  for (size_t o = 0; o < n_out; o++) {
    for (size_t i = 0; i < n_in; i++)
      split(w[o * n_in + i], &out->high[o * out->n_in + i], &out->low[o * out->n_in + i]);
  }
  return ERR_OK;
}

void bf16_layer_fini(struct bf16_layer *layer)
{
  mem_free(&layer->high);
  mem_free(&layer->low);
}
