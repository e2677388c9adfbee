/* SPDX-License-Identifier: Apache-2.0 */
/* The dot products that TopKAvg ranks by (MoL paper, section 3.2), in f32 on the device: the processor's, to the last
 * bit. */
#ifndef KERNELS_CUDA_AVERAGE_SCORE_H
#define KERNELS_CUDA_AVERAGE_SCORE_H

#include "kernels/cuda/candidates.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All pointers are of the device. */
struct average_score_input {
  struct device_rows rows;
  size_t offset; /* bytes of a row before its average */
  size_t dim;
  const float *queries; /* averages [n_lists][dim] */
  struct candidates_excluded excluded;
};

/* lists->scores = for each entry of list q, which is a present slot, the sum over k, rising, of query[k] * average[k],
 * fused; -inf for excluded items, and for NaN. Returns ERR_DEVICE. */
err_t average_score_lists(struct device_stream *stream, const struct average_score_input *input,
                          const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
