/* SPDX-License-Identifier: Apache-2.0 */
/* PQTopK on the device (RecJPQPrune paper, section 3.2): an item's score is the sum of its sub-items' scores. */
#ifndef KERNELS_CUDA_PQ_SCAN_H
#define KERNELS_CUDA_PQ_SCAN_H

#include "kernels/cuda/admitted.h"
#include "kernels/cuda/lists.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Input of both scans: device pointers. */
struct pq_scan_input {
  struct device_rows rows;     /* M codes per row */
  size_t n_splits;             /* M */
  const float *subitem_scores; /* [n_queries][M][PQ_SUBITEMS] */
  size_t n_queries;
  unsigned n_blocks; /* blocks that the device runs at a time */
  struct admitted_words admitted;
};

/* Tile t < n_tiles is the 64 slots from t * stride * 64 on, below n_slots. Set maxima[q][t] to the best score of an
 * item of the tile that query q admits; -inf if there is none.
 *
 * All functions sum scores in the order of the splits, in f32, so they equal the processor's to the last bit. All
 * return ERR_DEVICE on failure. */
err_t pq_scan_maxima(struct device_stream *stream, const struct pq_scan_input *input, size_t n_slots, size_t stride,
                     size_t n_tiles, float *maxima);

/* Append to list q the items in the n slots from `first` on, a multiple of 64, that query q admits and that score at
 * least floors[q]. */
err_t pq_scan_append(struct device_stream *stream, const struct pq_scan_input *input, size_t first, size_t n,
                     const float *floors, const struct device_lists *lists);

/* Score all entries of list q for query q. */
err_t pq_scan_score_lists(struct device_stream *stream, const struct pq_scan_input *input,
                          const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
