/* Dot products of all pairs of components in f32 on the device, the processor's to the last bit, without a filter: what
 * ranks TopKPerEmbedding's lists (MoL paper, section 3.2), for every shape. */
#ifndef KERNELS_CUDA_PAIR_DOTS_H
#define KERNELS_CUDA_PAIR_DOTS_H

#include "kernels/cuda/candidates.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/kernels.h"

/* Some of a group's lists: list q * L + n * P_x + m has the pair (n, m) of query q. All pointers are of the device. */
struct pair_dots {
  struct mol_shape shape;
  struct device_rows rows;
  const float *components; /* of queries: [n_queries][P_q][d_P] */
  struct candidates_excluded excluded;
  size_t first_list, n_lists;
  size_t n_slots;
  float *dots; /* [n_lists][n_slots] */
};

/* dots = sums over k, rising, of query[k] * item[k], fused; -inf for NaN and for items that are absent or excluded.
 * Both return ERR_DEVICE. */
err_t pair_dots_find(struct device_stream *stream, const struct pair_dots *p);

/* Append to list q of `to` the items with a dot product of thresholds[i] or more in list first_list + i of query q,
 * -inf never; seen [n_queries][n_words] as candidates_add() has it, scores are left open. */
err_t pair_dots_add(struct device_stream *stream, const struct pair_dots *p, const float *thresholds, uint32_t *seen,
                    size_t n_words, const struct device_lists *to);

#ifdef __cplusplus
}
#endif

#endif
