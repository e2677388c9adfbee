/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of candidates on the device (lists.h): what becomes of one list goes into another, each item once. */
#ifndef KERNELS_CUDA_CANDIDATES_H
#define KERNELS_CUDA_CANDIDATES_H

#include "kernels/cuda/lists.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Slots that queries do not admit, of the device. */
struct candidates_excluded {
  const uint32_t *firsts; /* [n_queries + 1]: those of query q are slots[firsts[q]] to slots[firsts[q + 1]], rising;
                             NULL: there are none */
  const uint32_t *slots;
};

/* Append to list i of `to` what of list i of `from` scores thresholds[i] or more, -inf never. Both return ERR_DEVICE.
 *
 * thresholds  [n_lists] of the device; NULL: -inf
 * seen        [n_lists][n_words] bits, one a slot: an item whose bit is set is left out, and bits of others are set;
 *             NULL: all are new
 */
err_t candidates_add(struct device_stream *stream, const struct device_lists *from, const float *thresholds,
                     uint32_t *seen, size_t n_words, const struct device_lists *to);

/* Where from->n[i] says that list i did not keep all, have to->n[i] say so of its list i: its entries count no more. */
err_t candidates_spoil(struct device_stream *stream, const struct device_lists *from, const struct device_lists *to);

#ifdef __cplusplus
}
#endif

#endif
