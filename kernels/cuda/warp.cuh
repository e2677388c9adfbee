/* SPDX-License-Identifier: Apache-2.0 */
/* Warp primitives, half-precision numbers, tensor-core products and fast approximations, each with its error bound.
 * Every function has a twin for the model of a device. */
#ifndef KERNELS_CUDA_WARP_CUH
#define KERNELS_CUDA_WARP_CUH

#include "kernels/cuda/launch.cuh"

#ifdef SLUICE_CUDA_MODEL
#include "tests/support/cuda_model/cuda_model_mma.h"
#else
#include <cuda_fp16.h>
#endif

#define WARP_ALL 0xffffffffu

/* Return x, which the compiler then keeps in a register of its own: it can neither compute it again nor merge it with
 * an equal number. */
static __device__ __forceinline__ uint32_t in_register(uint32_t x)
{
#ifndef SLUICE_CUDA_MODEL
  asm volatile("mov.b32 %0, %0;" : "+r"(x));
#endif
  return x;
}

/* sum + the products of a's bytes with b's, in one instruction. */
static __device__ __forceinline__ uint32_t add_byte_products(uint32_t a, uint32_t b, uint32_t sum)
{
#ifdef SLUICE_CUDA_MODEL
  for (int i = 0; i < 32; i += 8)
    sum += (a >> i & 0xff) * (b >> i & 0xff);
  return sum;
#else
  return __dp4a(a, b, sum);
#endif
}

static __device__ __forceinline__ unsigned warp_lane()
{
  return threadIdx.x % WARP_LANES;
}

/* The warp's number in its block. The compiler sees that all lanes have the same. */
static __device__ __forceinline__ unsigned warp_number()
{
  return __shfl_sync(WARP_ALL, threadIdx.x / WARP_LANES, 0);
}

/* A barrier for N_THREADS threads of a block, from a multiple of that many on. A block has at most 15 such groups. */
template <int N_THREADS> static __device__ __forceinline__ void group_sync()
{
#ifdef SLUICE_CUDA_MODEL
  cuda_model_group_sync(N_THREADS);
#else
  asm volatile("barrier.cta.sync %0, %1;" ::"r"(1 + threadIdx.x / N_THREADS), "n"(N_THREADS) : "memory");
#endif
}

static __device__ __forceinline__ float warp_sum(float x)
{
  for (int step = 16; step > 0; step /= 2)
    x += __shfl_xor_sync(WARP_ALL, x, step);
  return x;
}

static __device__ __forceinline__ float warp_max(float x)
{
  for (int step = 16; step > 0; step /= 2)
    x = fmaxf(x, __shfl_xor_sync(WARP_ALL, x, step));
  return x;
}

/* A half-precision number as its bits. */
typedef uint16_t half_bits;

static __device__ __forceinline__ half_bits half_of(float x) /* rounds to nearest, ties to even */
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_half(x);
#else
  return __half_as_ushort(__float2half_rn(x));
#endif
}

static __device__ __forceinline__ float float_of(half_bits x)
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_float(x);
#else
  return __half2float(__ushort_as_half(x));
#endif
}

/* Two halves in one register, the first in the low bits, as tensor-core operands need them. */
static __device__ __forceinline__ uint32_t half_pair(float low, float high)
{
#ifdef SLUICE_CUDA_MODEL
  return (uint32_t)cuda_model_half(low) | (uint32_t)cuda_model_half(high) << 16;
#else
  __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<uint32_t *>(&pair);
#endif
}

/* a b + c, two halves at a time, each rounded once. */
static __device__ __forceinline__ uint32_t half_pair_fma(uint32_t a, uint32_t b, uint32_t c)
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_half_pair_fma(a, b, c);
#else
  uint32_t d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
#endif
}

/* The larger halves of a and b, or NaN where either is NaN. */
static __device__ __forceinline__ uint32_t half_pair_max(uint32_t a, uint32_t b)
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_half_pair_max(a, b);
#else
  uint32_t d;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
#endif
}

/* The larger halves of a and b, or the other one where either is NaN. */
static __device__ __forceinline__ uint32_t half_pair_larger(uint32_t a, uint32_t b)
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_half_pair_larger(a, b);
#else
  uint32_t d;
  asm("max.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
#endif
}

/* The sum of two halves. */
static __device__ __forceinline__ float half_pair_sum(uint32_t x)
{
  return float_of((half_bits)x) + float_of((half_bits)(x >> 16));
}

/* D = A B + C on a tensor core: A [16][16] and B [16][8] in half precision, C and D [16][8] in f32. With g = lane / 4
 * and t = lane % 4, a lane has
 *
 *   a[0] A[g][2t, 2t+1]   a[1] A[g+8][2t, 2t+1]   a[2] A[g][2t+8, 2t+9]   a[3] A[g+8][2t+8, 2t+9]
 *   b[0] B[2t, 2t+1][g]   b[1] B[2t+8, 2t+9][g]
 *   c[0], c[1] C[g][2t, 2t+1]   c[2], c[3] C[g+8][2t, 2t+1]   and D likewise
 *
 * Products are exact. A number of D is a sum of 17 terms. Suppose that each term is cut to the 24 bits of the largest
 * one, and the sum is cut once more. That loses at most MMA_ERROR, which is 18 times 2^-23, times the sum of the
 * magnitudes, whatever the order of the additions. No generation of tensor cores that we compile for is known to keep
 * fewer bits.
 *
 * One case loses more. The core knows a product's size by its operands' exponents, and a subnormal half has the
 * exponent -14 however small it is. So a product of x and a subnormal half may count as 2^-14 |x|, and 18 times 2^-23
 * of that are lost too. That is below MMA_LOST times the largest magnitude in A and B, or times 2^-14 if all are
 * smaller. tests/gpu/gpu_mma.c measures both. */
#define MMA_ERROR 0x1.2p-19f
#define MMA_LOST  0x1p-32f

static __device__ __forceinline__ void mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4])
{
#ifdef SLUICE_CUDA_MODEL
  cuda_model_mma_f16(d, a, b, c);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#endif
}

/* The same with C and D in half precision: c[0] is C[g][2t, 2t+1], c[1] C[g+8][2t, 2t+1], and D likewise. A number of D
 * is rounded to nearest at the end. Some generations may add the products in two parts, and round after each. That is
 * MMA_HALF_ERROR of the sum of the magnitudes, which includes MMA_ERROR, and MMA_HALF_LOST where halves are subnormal;
 * and MMA_LOST as above. tests/gpu/gpu_mma.c measures this, too. A NaN in D has no sign bit, whatever NaN it comes from
 * (tests/gpu/gpu_mol_pairs.c). */
#define MMA_HALF_ERROR 0x1.02p-10f
#define MMA_HALF_LOST  0x1p-24f

static __device__ __forceinline__ void mma_halves(uint32_t d[2], const uint32_t a[4], const uint32_t b[2],
                                                  const uint32_t c[2])
{
#ifdef SLUICE_CUDA_MODEL
  cuda_model_mma_halves(d, a, b, c);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
      : "=r"(d[0]), "=r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]));
#endif
}

/* Load four 8 x 8 matrices of halves from shared memory. `row` is the lane's row, 16 bytes, by its shared_address():
 * rows 0 to 7 of matrix i are those of lanes 8 i to 8 i + 7. In out[i] the lane gets the numbers [g][2t, 2t+1] of matrix
 * i, as mma_f16() needs them. */
static __device__ __forceinline__ void load_matrices_at(uint32_t out[4], uint32_t row)
{
#ifdef SLUICE_CUDA_MODEL
  const unsigned char(*all)[CUDA_MODEL_WARP_BYTES] = cuda_model_exchange(&row, sizeof row);
  for (unsigned i = 0; i < 4; i++) {
    uint32_t from;
    memcpy(&from, all[8 * i + threadIdx.x % WARP_LANES / 4], sizeof from);
    memcpy(&out[i], &shared_at<half_bits>(from) + threadIdx.x % 4 * 2, sizeof out[i]);
  }
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row)
               : "memory");
#endif
}

/* The same by a pointer. */
static __device__ __forceinline__ void load_matrices(uint32_t out[4], const half_bits *row)
{
  load_matrices_at(out, shared_address(row));
}

/* The special-function unit's exp2 and tanh. exp2 is within 2 ulp, tanh within a relative error of 2^-11 (PTX manual).
 */
static __device__ __forceinline__ float fast_exp2(float x)
{
#ifdef SLUICE_CUDA_MODEL
  return exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

static __device__ __forceinline__ float fast_tanh(float x)
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_fast_tanh(x);
#else
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

/* An approximate square root and reciprocal, each within a relative error of 2^-22 (PTX manual: 2^-23, and 1 ulp). */
static __device__ __forceinline__ float fast_sqrt(float x)
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_inexact(sqrtf(x), 0x1p-23f);
#else
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

static __device__ __forceinline__ float fast_reciprocal(float x)
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_inexact(1 / x, 0x1p-23f);
#else
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

/* Start an asynchronous copy of 16 bytes from global to shared memory. */
static __device__ __forceinline__ void copy_async(void *shared, const void *global)
{
#ifdef SLUICE_CUDA_MODEL
  cuda_model_copy_async(shared, global, 16);
#else
  unsigned at = (unsigned)__cvta_generic_to_shared(shared);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(global) : "memory");
#endif
}

/* The same for one float, for rows that are not aligned to 16 bytes, or that are transposed. */
static __device__ __forceinline__ void copy_async_float(float *shared, const float *global)
{
#ifdef SLUICE_CUDA_MODEL
  cuda_model_copy_async(shared, global, sizeof *shared);
#else
  unsigned at = (unsigned)__cvta_generic_to_shared(shared);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(global) : "memory");
#endif
}

static __device__ __forceinline__ void copy_async_commit()
{
#ifdef SLUICE_CUDA_MODEL
  cuda_model_copy_async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Wait until at most `pending` of the thread's newest copy groups are unfinished. To see other threads' copies, use a
 * barrier as well. */
template <int pending> __device__ __forceinline__ void copy_async_wait()
{
#ifdef SLUICE_CUDA_MODEL
  cuda_model_copy_async_wait(pending);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

#endif
