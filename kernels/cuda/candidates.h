/* SPDX-License-Identifier: Apache-2.0 */
/* Candidate lists on the device (lists.h): append selected entries of one list to another, each item once. */
#ifndef KERNELS_CUDA_CANDIDATES_H
#define KERNELS_CUDA_CANDIDATES_H

#include "kernels/cuda/lists.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Slots that queries exclude, in device memory. */
struct candidates_excluded {
  const uint32_t *firsts; /* [n_queries + 1]: query q excludes slots[firsts[q]] to slots[firsts[q + 1] - 1], ascending;
                             NULL: no query excludes anything */
  const uint32_t *slots;
};

/* Lists whose overflow makes candidates incomplete. */
enum { CANDIDATES_ORIGINS = 3 };

struct candidates_origins {
  const uint32_t *n[CANDIDATES_ORIGINS]; /* [n_lists] on the device: list i has overflowed if n[][i] > capacity[];
                                            NULL: no such lists */
  size_t capacity[CANDIDATES_ORIGINS];
};

/* Append to list i of `to` the entries of list i of `from` that score at least thresholds[i]. Entries that score -inf
 * are skipped. Returns ERR_DEVICE on failure.
 *
 * thresholds  [n_lists] on the device; NULL: no threshold
 * seen        [n_lists][n_words] on the device, one bit per slot. An item whose bit is set is skipped; the bits of
 *             appended items are set. NULL: no item is skipped
 * origins     if a list i of these has overflowed, nothing is appended to list i of `to`; instead it is marked as
 *             overflowed, with LISTS_INVALID. The arrays are not those of `to`. NULL: what is stored is taken
 */
err_t candidates_add(struct device_stream *stream, const struct device_lists *from, const float *thresholds,
                     uint32_t *seen, size_t n_words, const struct candidates_origins *origins,
                     const struct device_lists *to);

#ifdef __cplusplus
}
#endif

#endif
