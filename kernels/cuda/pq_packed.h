/* SPDX-License-Identifier: Apache-2.0 */
/* PQTopK for eight splits by packed integers: bounds on scores from sums of 16-bit levels, two queries a register.
 * pq_scan.h is the general scan, in f32.
 *
 * The proof. Let u = 2^-24. For one query, S_m is the score of an item's sub-item in split m. low_m and high_m are the
 * least and the largest S_m of any sub-item. LOW = sum low_m, and A = sum max |S_m|. The canonical score s is the f32
 * sum of the eight S_m; s* is their real sum.
 *
 * 1. |s - s*| <= 8 u A: seven additions in f32, which do not underflow. margin = 16 u A + 2^-140. The second half of it
 *    covers sums of eight numbers in double, and one rounding to f32.
 * 2. rate = 32758 / sum (high_m - low_m), and level_m = ceil((S_m - low_m) rate), in double. Let L = sum level_m. The
 *    computed product is within 2^-51 of its size. So (s* - LOW) rate - 2^-30 <= L <= (s* - LOW) rate + 8 + 2^-30.
 *    L <= 32767, because sum (high_m - low_m) rate is at most 32758 (1 + 2^-50).
 * 3. If s reaches a floor, then s* >= floor - 8 u A, and L >= F = ceil((floor - margin - LOW) rate) - 1 by 1 and 2. The
 *    spare unit covers all roundings in double of that expression.
 * 4. s >= LOW + (L - 9) / rate - margin, for the same reasons. This is the lower bound of pq_packed_maxima().
 * 5. A half word starts at 2^15 - F, with F clamped to [0, 2^15]. Adding the levels gives 2^15 + L - F, at most
 *    2^16 - 1. So no sum carries into the other half, and bit 15 is set exactly if L >= F.
 * 6. Without a rate, all levels are 0 and F is 0: every item passes, and lower bounds are -inf. This is the case if all
 *    sub-items score the same, or if a score is NaN or above 2^120 in magnitude.
 */
#ifndef KERNELS_CUDA_PQ_PACKED_H
#define KERNELS_CUDA_PQ_PACKED_H

#include "kernels/cuda/pq_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PQ_PACKED_SPLITS = 8 };

/* A query's terms of the proof. */
struct pq_packed_scale {
  double low, rate, margin; /* rate 0: there is none */
};

/* Levels of a batch of queries in device memory, made by pq_packed_maxima(). The tables are aligned to 16 bytes. */
struct pq_packed_levels {
  uint8_t *tables;                /* [pq_packed_table_bytes()] */
  struct pq_packed_scale *scales; /* [pq_packed_n_scales()] */
};

/* Sizes of the levels of n queries on this device. */
size_t pq_packed_table_bytes(size_t n_queries);
size_t pq_packed_n_scales(size_t n_queries);

/* An upper limit of both sizes together, in bytes per query. */
enum { PQ_PACKED_QUERY_BYTES = 33 * 1024 };

/* Compute the levels of the input's queries. Empty `lists`, of any number; that saves an operation. Tile t < n_tiles
 * is the 64 slots from t * stride * 64 on, below n_slots. Set maxima[q][t] to a lower bound on the best score of an
 * item of the tile that query q admits; -inf if there is none.
 *
 * Both functions take inputs of PQ_PACKED_SPLITS splits, at least one slot, and at least one tile. They return
 * ERR_DEVICE on failure. */
err_t pq_packed_maxima(struct device_stream *stream, const struct pq_scan_input *input,
                       const struct pq_packed_levels *levels, const struct device_lists *lists, size_t n_slots,
                       size_t stride, size_t n_tiles, float *maxima);

/* Append to list q the items of the n_slots slots that query q admits and that may score at least its floor, the
 * ranks[q]-th largest of its maxima. Their scores in the list are undefined.
 *
 * floors  [n_queries] on the device, undefined before and after */
err_t pq_packed_append(struct device_stream *stream, const struct pq_scan_input *input,
                       const struct pq_packed_levels *levels, size_t n_slots, const float *maxima, size_t n_tiles,
                       struct lists_ranks ranks, float *floors, const struct device_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
