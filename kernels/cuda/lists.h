/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of scored items in device memory, one or more for each query. Scans append to them, and the functions below
 * find the best of each list.
 *
 * Nothing is sorted on the device. A list's N-th best score is found by selection (lists.cu), and every entry that
 * reaches it is kept, ties included. The host knows the keys and orders what comes back.
 */
#ifndef KERNELS_CUDA_LISTS_H
#define KERNELS_CUDA_LISTS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LISTS_INVALID UINT32_MAX

/* All pointers are device pointers. */
struct device_lists {
  size_t n_lists;
  size_t capacity; /* entries of one list */
  uint32_t *n;     /* [n_lists]: items appended; above capacity the list has overflowed, and the surplus is lost;
                      LISTS_INVALID: overflowed, and what is stored must not be read */
  uint32_t *slots; /* [n_lists][capacity] */
  float *scores;   /* [n_lists][capacity] */
};

/* Empty all lists. */
err_t lists_clear(struct device_stream *stream, const struct device_lists *lists);

/* The rank to find in each list: the (of[i] + more)-th best score of list i; the sum is at least 1. of [n_lists] on the
 * device; NULL: zeros. */
struct lists_ranks {
  const uint32_t *of;
  uint32_t more;
};

/* Set thresholds[i] to the score of the given rank in list i, or -inf if the list is shorter. Of an overflowed list
 * only the stored entries count. NaN never counts as a score. thresholds [n_lists] on the device. */
err_t lists_threshold(struct device_stream *stream, const struct device_lists *lists, struct lists_ranks ranks,
                      float *thresholds);

/* The same for plain arrays: scores [n_lists][n] on the device, where -inf means that there is no score. */
err_t lists_threshold_of(struct device_stream *stream, const float *scores, size_t n_lists, size_t n,
                         struct lists_ranks ranks, float *thresholds);

/* Set floors[i] to others[i] where that is larger. Both [n] on the device, without NaN. */
err_t lists_raise(struct device_stream *stream, float *floors, const float *others, size_t n);

/* Append to list i of `to` the entries of list i of `from` that score at least thresholds[i]. NaN is never appended. */
err_t lists_keep(struct device_stream *stream, const struct device_lists *from, const float *thresholds,
                 const struct device_lists *to);

/* Sort each list by score, the best first. Longer lists, and those that have overflowed, stay as they are. Each slot is
 * at most once in a list, and no score is NaN. */
enum { LISTS_SORTED_MAX = 1024 };
err_t lists_sort(struct device_stream *stream, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
