/* SPDX-License-Identifier: Apache-2.0 */
/* The cross gate's weights in half precision on the device, and the factors of mol_bounds.h's proof. The kernels of
 * mol_bounds.h read nothing else of a model. */
#ifndef KERNELS_CUDA_MOL_HALF_GATE_CUH
#define KERNELS_CUDA_MOL_HALF_GATE_CUH

#include "kernels/cuda/mol_bounds.h"
#include "kernels/cuda/warp.cuh"

enum {
  BOUND_QUERY_COMPONENTS = 8,
  BOUND_HIDDEN = 128,
  BOUND_STEP = 16,             /* inputs that the tensor core adds at a time */
  BOUND_ONES = 64 * BOUND_STEP /* halves */
};

#define BOUND_SECOND_ORDER (1 + 0x1p-8f)

/* delta = logit_errors |l - l'| + logits |l'| + hidden |h'| + max |query gate| (gate_errors |v - v16| + gates |v16|) +
 * constant */
struct mol_half_factors {
  float logit_errors, logits, hidden, gate_errors, gates, constant;
};

/* Both layers store their weights and biases times 1/2, because the kernel's SiLU takes half its argument. Weights are
 * halves in the order of warpgroup_place(), with the inputs as k and the outputs as columns. Logits are in item-major
 * order: m * P_q + n. A layer has a step more than its inputs fill: the weights of its first two numbers, which are 1,
 * add up to the bias. For this step, `ones` has the inputs of 64 items in the same order. */
struct mol_half_gate {
  struct mol_shape shape;
  struct mol_half_factors factors;
  uint4 *weights; /* on the device: ones and both layers */
};

static inline __host__ __device__ size_t bound_first_halves(size_t n_logits)
{
  return (n_logits + BOUND_STEP) * BOUND_HIDDEN;
}

static inline __host__ __device__ size_t bound_weight_bytes(size_t n_logits)
{
  return (BOUND_ONES + bound_first_halves(n_logits) + (BOUND_HIDDEN + BOUND_STEP) * n_logits) * sizeof(half_bits);
}

/* The least shared memory that the kernels need per block, in bytes, for a shape that they cover. */
size_t bound_least_bytes(const struct mol_shape *shape);

#endif
