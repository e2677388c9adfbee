/* SPDX-License-Identifier: Apache-2.0 */
/* The cross gate's weights in half precision on the device, and the factors of mol_bounds.h's proof. The kernels of
 * mol_bounds.h read nothing else of a model. */
#ifndef KERNELS_CUDA_MOL_HALF_GATE_CUH
#define KERNELS_CUDA_MOL_HALF_GATE_CUH

#include "kernels/cuda/mol_bounds.h"
#include "kernels/cuda/warp.cuh"

enum { BOUND_QUERY_COMPONENTS = 8, BOUND_HIDDEN = 128, BOUND_STEP = 16 /* inputs per mma_f16() */ };

#define BOUND_SECOND_ORDER (1 + 0x1p-8f)

/* delta = logit_errors |l - l'| + logits |l'| + hidden |h'| + max |query gate| (gate_errors |v - v16| + gates |v16|) +
 * constant */
struct mol_half_factors {
  float logit_errors, logits, hidden, gate_errors, gates, constant;
};

/* Both layers store their weights and biases times 1/2, because the kernel's SiLU takes half its argument.
 *
 * Weights are in the tensor core's order. For each block of 16 hidden units c and 16 logits i, each lane has 16 bytes:
 * b[0] and b[1] of one mma_f16(), then of a second one. In the first layer the inputs are i, and the outputs are the
 * first 8 of c, then the last 8. In the second layer the inputs are c, and the outputs are the first 8 of i, then the
 * last 8. Logits are in item-major order: m * P_q + n.
 *
 * Biases are in the order of sums. For each 8 outputs, lane t of four has those of its two outputs, twice. */
struct mol_half_gate {
  struct mol_shape shape;
  struct mol_half_factors factors;
  uint4 *weights; /* on the device: [2][H / 16][L / 16][32], then the biases as floats: [H / 8][4][4], [L / 8][4][4] */
};

static inline __host__ __device__ size_t bound_layer_bytes(size_t n_logits)
{
  return BOUND_HIDDEN / BOUND_STEP * (n_logits / BOUND_STEP) * WARP_LANES * sizeof(uint4);
}

static inline __host__ __device__ size_t bound_weight_bytes(size_t n_logits)
{
  return 2 * bound_layer_bytes(n_logits) + 2 * (BOUND_HIDDEN + n_logits) * sizeof(float);
}

/* The least shared memory that the kernels need per block, in bytes, for a shape that they cover. */
size_t bound_least_bytes(const struct mol_shape *shape);

#endif
