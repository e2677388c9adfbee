/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of a PQTopK search with eight splits (pq_packed.h): exact scores of the listed items, and the best of
 * them. */
#ifndef KERNELS_CUDA_PQ_HITS_H
#define KERNELS_CUDA_PQ_HITS_H

#include "kernels/cuda/pq_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Score the entries of every list as pq_scan_score_lists() does. Set thresholds[i] as lists_threshold() does. Set list
 * i of `hits` to the entries that reach it, as lists_keep() does with an empty list. For lists of up to some thousand
 * entries: one block works on each. There is one list for each query of the input. Returns ERR_DEVICE on
 * failure.
 *
 * thresholds, hits, n_listed  written once and never read, so they may be pinned host memory
 * n_listed                    [n_lists]: becomes the lists' lengths; may be NULL */
err_t pq_hits_find(struct device_stream *stream, const struct pq_scan_input *input, const struct device_lists *lists,
                   struct lists_ranks ranks, float *thresholds, const struct device_lists *hits, uint32_t *n_listed);

#ifdef __cplusplus
}
#endif

#endif
