/* SPDX-License-Identifier: Apache-2.0 */
/* PQTopK on the device (RecJPQPrune paper, section 3.2): every item's score is the sum of its sub-items' scores. */
#ifndef KERNELS_CUDA_PQ_SCAN_H
#define KERNELS_CUDA_PQ_SCAN_H

#include "kernels/cuda/lists.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What both scans read, of the device. */
struct pq_scan_input {
  struct device_rows rows;     /* codes, M of them in each row */
  size_t n_splits;             /* M */
  const float *subitem_scores; /* [n_queries][M][PQ_SUBITEMS] */
  size_t n_queries;
  unsigned n_blocks; /* that the device runs at a time */
};

/* Scores are summed in order of the splits, in f32: the processor's, to the last bit. Both return ERR_DEVICE.
 *
 * maxima[q][t] = the best score of a present item of slots t * stride * 64 and the 63 behind it, below n_slots, for
 * t < n_tiles; -inf where there is none. */
err_t pq_scan_maxima(struct device_stream *stream, const struct pq_scan_input *input, size_t n_slots, size_t stride,
                     size_t n_tiles, float *maxima);

/* Append the present items of slots first to first + n that score floors[q] or more to list q. */
err_t pq_scan_append(struct device_stream *stream, const struct pq_scan_input *input, size_t first, size_t n,
                     const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
