/* SPDX-License-Identifier: Apache-2.0 */
/* The dot products that TopKAvg ranks by (MoL paper, section 3.2), in f32 on the device. They equal the processor's to
 * the last bit. */
#ifndef KERNELS_CUDA_AVERAGE_SCORE_H
#define KERNELS_CUDA_AVERAGE_SCORE_H

#include "kernels/cuda/candidates.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All pointers are device pointers. */
struct average_score_input {
  struct device_rows rows;
  size_t offset; /* where the average begins in a row, in bytes */
  size_t dim;
  const float *queries; /* averages [n_lists][dim] */
  struct candidates_excluded excluded;
};

/* Score every entry of list q with query q: the fused sum of query[k] * average[k], with k ascending. Scores go to
 * lists->scores; excluded items and NaN get -inf. All entries must be present slots. Returns ERR_DEVICE on failure. */
err_t average_score_lists(struct device_stream *stream, const struct average_score_input *input,
                          const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
