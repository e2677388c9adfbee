/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of scored items in the device's memory, one or more for each query: what scans append to, and how the best of
 * them are found.
 *
 * Nothing sorts on the device. The N-th best score of a list is found by its digits, and what reaches it is kept, ties
 * included; the host, which has the keys, orders what comes back.
 */
#ifndef KERNELS_CUDA_LISTS_H
#define KERNELS_CUDA_LISTS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All pointers are of the device. */
struct device_lists {
  size_t n_lists;
  size_t capacity; /* of each */
  uint32_t *n;     /* [n_lists]: items that were offered; where that is more than capacity, some were not kept */
  uint32_t *slots; /* [n_lists][capacity] */
  float *scores;   /* [n_lists][capacity] */
};

/* Empty all lists. */
err_t lists_clear(struct device_stream *stream, const struct device_lists *lists);

/* What is asked of each list: its (of[i] + more)-th best, at least the first. of [n_lists], of the device; NULL:
 * zeros. */
struct lists_ranks {
  const uint32_t *of;
  uint32_t more;
};

/* thresholds[i] = the best of list i's scores of its rank; -inf where it has fewer. A list that did not keep all that
 * was offered counts with what it kept. NaN is not a score: it counts as nothing. thresholds [n_lists], of the device.
 */
err_t lists_threshold(struct device_stream *stream, const struct device_lists *lists, struct lists_ranks ranks,
                      float *thresholds);

/* The same of plain arrays: scores [n_lists][n], of which -inf stands for nothing. */
err_t lists_threshold_of(struct device_stream *stream, const float *scores, size_t n_lists, size_t n,
                         struct lists_ranks ranks, float *thresholds);

/* Append to list i of `to` what of list i of `from` scores thresholds[i] or more, NaN never. */
err_t lists_keep(struct device_stream *stream, const struct device_lists *from, const float *thresholds,
                 const struct device_lists *to);

#ifdef __cplusplus
}
#endif

#endif
