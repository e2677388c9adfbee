/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel of mol_bounds.cu reads of a model: the cross gate's weights, and the factors of mol_bounds.h's proof.
 */
#ifndef KERNELS_CUDA_MOL_HALF_GATE_CUH
#define KERNELS_CUDA_MOL_HALF_GATE_CUH

#include "kernels/cuda/mol_bounds.h"
#include "kernels/cuda/warp.cuh"

enum { BOUND_QUERY_COMPONENTS = 8, BOUND_HIDDEN = 128, BOUND_STEP = 16 /* inputs of one mma_f16() */ };

#define BOUND_SECOND_ORDER (1 + 0x1p-8f)

/* delta = logit_errors |l - l'| + logits |l'| + hidden |h'| + gate_errors |errors of z| + gates |z'| + constant */
struct mol_half_factors {
  float logit_errors, logits, hidden, gate_errors, gates, constant;
};

/* Both layers are in halves of their weights: what SiLU wants is half its argument. A layer's weights lie as
 * tensor cores want them: for each 16 hidden units c and each 16 logits i, lane's 16 bytes hold b[0], b[1] of one
 * mma_f16() and of another: for the first layer, inputs i, and outputs the first and the last 8 of c; for the second
 * layer, inputs c, and outputs the first and the last 8 of i. Logits are in item-major order: m * P_q + n. */
struct mol_half_gate {
  struct mol_shape shape;
  struct mol_half_factors factors;
  uint4 *weights; /* of the device: [2][H / 16][L / 16][32], then biases: floats [H], [L] */
};

static inline __host__ __device__ size_t bound_layer_bytes(size_t n_logits)
{
  return BOUND_HIDDEN / BOUND_STEP * (n_logits / BOUND_STEP) * WARP_LANES * sizeof(uint4);
}

static inline __host__ __device__ size_t bound_weight_bytes(size_t n_logits)
{
  return 2 * bound_layer_bytes(n_logits) + (BOUND_HIDDEN + n_logits) * sizeof(float);
}

/* Shared memory that a block of the kernels needs at least, for a shape that they cover. */
size_t bound_least_bytes(const struct mol_shape *shape);

#endif
