/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits scores on the device, for every shape. The steps and their order are those of mol_score() in
 * kernels.h, so the bits equal the processor's. */
#ifndef KERNELS_CUDA_MOL_SCORE_H
#define KERNELS_CUDA_MOL_SCORE_H

#include "kernels/cuda/admitted.h"
#include "kernels/cuda/lists.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/mol.h"

/* In the weights' arrays a layer's outputs are padded to a multiple of this. The padding may have any values. */
enum { MOL_SCORE_PAD = 16 };

static inline size_t mol_score_pad(size_t n)
{
  return (n + MOL_SCORE_PAD - 1) / MOL_SCORE_PAD * MOL_SCORE_PAD;
}

/* All pointers are device pointers, aligned to 16 bytes. */
struct mol_score_input {
  struct mol_shape shape;
  struct mol_gate gate;    /* w1 [L][H padded], b1 [H padded], w2 [H][L padded], b2 [L padded] */
  struct device_rows rows; /* f32: components [P_x d_P], gate [L], average [d_P]; more may follow */
  const float *components; /* the queries': [n_queries][P_q][d_P] */
  const float *gates;      /* the queries': [n_queries][L] */
  size_t n_queries;
  unsigned n_blocks; /* blocks that the device runs at a time */
  float *work;       /* mol_score_work_bytes() bytes; unused if that is 0 */
  struct admitted_words admitted;
};

/* Bytes of work space for shapes whose tiles exceed a block's shared memory; 0 for most shapes. */
size_t mol_score_work_bytes(const struct mol_shape *shape, unsigned n_blocks);

/* Score every entry of list q for query q, into lists->scores. Scores may be NaN. All entries must be present slots.
 * Both functions return ERR_DEVICE on failure. */
err_t mol_score_lists(struct device_stream *stream, const struct mol_score_input *input,
                      const struct device_lists *lists);

/* Append to list q the items in the n slots from `first` on that query q admits and that score at least floors[q]. NaN
 * is never appended. */
err_t mol_score_append(struct device_stream *stream, const struct mol_score_input *input, size_t first, size_t n,
                       const float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
