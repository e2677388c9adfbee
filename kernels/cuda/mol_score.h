/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits scores on the device, as mol_score() of kernels.h: the same steps in the same order, so that the
 * bits are the processor's, for every shape. */
#ifndef KERNELS_CUDA_MOL_SCORE_H
#define KERNELS_CUDA_MOL_SCORE_H

#include "kernels/cuda/lists.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/kernels.h"

/* What outputs of a layer are padded to in the weights' arrays, with whatever numbers. */
enum { MOL_SCORE_PAD = 16 };

static inline size_t mol_score_pad(size_t n)
{
  return (n + MOL_SCORE_PAD - 1) / MOL_SCORE_PAD * MOL_SCORE_PAD;
}

/* All pointers are of the device; each aligned to 16. */
struct mol_score_input {
  struct mol_shape shape;
  struct mol_gate gate;    /* w1 [L][H padded], b1 [H padded], w2 [H][L padded], b2 [L padded] */
  struct device_rows rows; /* f32: components [P_x d_P], gate [L], average [d_P]; more may follow */
  const float *components; /* of queries: [n_queries][P_q][d_P] */
  const float *gates;      /* [n_queries][L] */
  size_t n_queries;
  unsigned n_blocks; /* that the device runs at a time */
  float *work;       /* [mol_score_work_bytes()], where that is not 0 */
};

/* Bytes that the kernels need for shapes beyond what the device's processors keep to themselves; 0 for most. */
size_t mol_score_work_bytes(const struct mol_shape *shape, unsigned n_blocks);

/* lists->scores = the scores of the entries of list q for query q; NaN where they are. Slots are present. Both return
 * ERR_DEVICE. */
err_t mol_score_lists(struct device_stream *stream, const struct mol_score_input *input,
                      const struct device_lists *lists);

/* Append the present items of slots first to first + n that score floors[q] or more to list q; never NaN. */
err_t mol_score_append(struct device_stream *stream, const struct mol_score_input *input, size_t first, size_t n,
                       const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
