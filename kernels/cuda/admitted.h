/* SPDX-License-Identifier: Apache-2.0 */
/* The slots that queries admit, in device memory, for all scans. And a list of these slots, for queries that admit so
 * few that no scan is needed. */
#ifndef KERNELS_CUDA_ADMITTED_H
#define KERNELS_CUDA_ADMITTED_H

#include "kernels/cuda/lists.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Words of 64 slots. A query without words admits every present slot. Absent slots are never admitted, whatever their
 * bits. */
struct admitted_words {
  const uint64_t *const *of; /* [n_queries]: bit s of of[q] is set if query q admits slot s. of[q] NULL: it has no
                                words. of NULL: no query has any */
};

/* Append to list q the n slots from `first` on that query q admits. Every query has words, of present slots only.
 * Scores in the list are undefined. first is a multiple of 64. Returns ERR_DEVICE on failure. */
err_t admitted_append(struct device_stream *stream, const struct admitted_words *admitted, size_t first, size_t n,
                      const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
