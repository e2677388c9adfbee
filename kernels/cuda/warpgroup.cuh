/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a warpgroup: four warps, the first of which has a number that is a multiple of four. On Hopper they share
 * one asynchronous instruction (wgmma), which reads the second operand from shared memory itself. Elsewhere each warp
 * multiplies by mma_f16() at once, and a warpgroup is only a name for four warps. The results are of the same kind: the
 * same tensor cores add them.
 *
 * Between warpgroup_begin() and warpgroup_commit(), the four warps call warpgroup_set() and warpgroup_add() for the
 * same B; each has rows of its own of A and D, 16 x 16 and 16 x N. Nobody may read or write d until warpgroup_wait()
 * says so. Every warp of a group takes the same path between these calls.
 *
 * B is [K / 16 steps][N / 8][2][8][8] halves in shared memory: eight numbers of the inner index k for each of eight
 * columns, then the other eight of the step. */
#ifndef KERNELS_CUDA_WARPGROUP_CUH
#define KERNELS_CUDA_WARPGROUP_CUH

#include "kernels/cuda/warp.cuh"

enum {
  WARPGROUP_WARPS = 4,
  WARPGROUP_THREADS = WARPGROUP_WARPS * WARP_LANES,
  MATRIX_HALVES = 64, /* 8 x 8 */
};

/* The model of a device asks each time: it can be either kind. */
#if !defined(SLUICE_CUDA_MODEL) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WARPGROUPS
#endif

/* The position of B[k][n] among the halves of a matrix of n_columns. */
static inline __host__ __device__ size_t warpgroup_place(size_t n_columns, size_t k, size_t n)
{
  return ((k / 16 * (n_columns / 8) + n / 8) * 2 + k % 16 / 8) * MATRIX_HALVES + n % 8 * 8 + k % 8;
}

/* Let the tensor cores see what this thread has written to shared memory, also by asynchronous copies that it has
 * waited for. A barrier must follow. */
static __device__ __forceinline__ void warpgroup_publish()
{
#ifdef HAS_WARPGROUPS
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Is the condition true in any thread of the warpgroup? Where there are none, of the warp. */
static __device__ __forceinline__ bool warpgroup_any(bool is_true)
{
#ifdef SLUICE_CUDA_MODEL
  return cuda_model_has_warpgroups() ? cuda_model_warpgroup_any(is_true) : __any_sync(WARP_ALL, is_true);
#elif defined(HAS_WARPGROUPS)
  uint32_t is_any;
  asm volatile("{ .reg .pred mine, any;\n"
               "setp.ne.u32 mine, %1, 0;\n"
               "barrier.cta.red.or.pred any, %2, %3, mine;\n"
               "selp.u32 %0, 1, 0, any; }"
               : "=r"(is_any)
               : "r"((uint32_t)is_true), "r"(1 + threadIdx.x / WARPGROUP_THREADS), "n"((int)WARPGROUP_THREADS)
               : "memory");
  return is_any;
#else
  return __any_sync(WARP_ALL, is_true);
#endif
}

/* Begin products, after operands and sums were written to registers. */
static __device__ __forceinline__ void warpgroup_begin()
{
#ifdef SLUICE_CUDA_MODEL
  if (cuda_model_has_warpgroups())
    cuda_model_warpgroup_begin();
#elif defined(HAS_WARPGROUPS)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void warpgroup_commit()
{
#ifdef SLUICE_CUDA_MODEL
  if (cuda_model_has_warpgroups())
    cuda_model_warpgroup_commit();
#elif defined(HAS_WARPGROUPS)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

#ifdef HAS_WARPGROUPS
/* Where the instruction finds B: its address, and the distances from one of the two matrices of a step to the other and
 * from 8 columns to the next, all in units of 16 bytes. */
static __device__ __forceinline__ uint64_t matrix_descriptor(const half_bits *b, size_t place)
{
  enum { UNIT = 8 /* halves */ };
  uint32_t low = (uint32_t)__cvta_generic_to_shared(b) / (UNIT * 2) + (MATRIX_HALVES / UNIT << 16);
  uint64_t descriptor;

  asm("mov.b64 %0, {%1, %2};"
      : "=l"(descriptor)
      : "r"(low + (uint32_t)place / UNIT), "r"((uint32_t)(2 * MATRIX_HALVES / UNIT)));
  return descriptor;
}

static __device__ __forceinline__ void multiply_async(float (&d)[4][4], uint64_t a, uint64_t b)
{
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, 0, 1, 1, 0, 0;"
               : "=f"(d[0][0]), "=f"(d[0][1]), "=f"(d[0][2]), "=f"(d[0][3]), "=f"(d[1][0]), "=f"(d[1][1]),
                 "=f"(d[1][2]), "=f"(d[1][3]), "=f"(d[2][0]), "=f"(d[2][1]), "=f"(d[2][2]), "=f"(d[2][3]),
                 "=f"(d[3][0]), "=f"(d[3][1]), "=f"(d[3][2]), "=f"(d[3][3])
               : "l"(a), "l"(b)
               : "memory");
}

static __device__ __forceinline__ void add_async(float (&d)[4][4], const uint32_t a[4], uint64_t b)
{
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19}, %20, 1, 1, 1, 0;"
               : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
                 "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
                 "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
               : "memory");
}

static __device__ __forceinline__ void multiply_async(float (&d)[8][4], uint64_t a, uint64_t b)
{
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
               "%28,%29,%30,%31}, %32, %33, 0, 1, 1, 0, 0;"
               : "=f"(d[0][0]), "=f"(d[0][1]), "=f"(d[0][2]), "=f"(d[0][3]), "=f"(d[1][0]), "=f"(d[1][1]),
                 "=f"(d[1][2]), "=f"(d[1][3]), "=f"(d[2][0]), "=f"(d[2][1]), "=f"(d[2][2]), "=f"(d[2][3]),
                 "=f"(d[3][0]), "=f"(d[3][1]), "=f"(d[3][2]), "=f"(d[3][3]), "=f"(d[4][0]), "=f"(d[4][1]),
                 "=f"(d[4][2]), "=f"(d[4][3]), "=f"(d[5][0]), "=f"(d[5][1]), "=f"(d[5][2]), "=f"(d[5][3]),
                 "=f"(d[6][0]), "=f"(d[6][1]), "=f"(d[6][2]), "=f"(d[6][3]), "=f"(d[7][0]), "=f"(d[7][1]),
                 "=f"(d[7][2]), "=f"(d[7][3])
               : "l"(a), "l"(b)
               : "memory");
}

static __device__ __forceinline__ void add_async(float (&d)[8][4], const uint32_t a[4], uint64_t b)
{
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
               "%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 1, 1, 1, 0;"
               : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
                 "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
                 "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
                 "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
                 "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
                 "+f"(d[7][2]), "+f"(d[7][3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
               : "memory");
}
#else
static __device__ __forceinline__ void multiply_now(float (*d)[4], int n_matrices, const uint32_t a[4],
                                                    const half_bits *b, bool adds)
{
  const float zeros[4] = { 0.0f, 0.0f, 0.0f, 0.0f };

#ifdef SLUICE_CUDA_MODEL
  if (cuda_model_has_warpgroups()) {
    cuda_model_warpgroup_multiply(&d[0][0], (unsigned)n_matrices, a, b, adds);
    return;
  }
#endif
#pragma unroll
  for (int i = 0; i < n_matrices; i += 2) {
    uint32_t columns[4];
    load_matrices(columns, b + i * 2 * MATRIX_HALVES + warp_lane() * 8);
    mma_f16(d[i], a, columns, adds ? d[i] : zeros);
    mma_f16(d[i + 1], a, columns + 2, adds ? d[i + 1] : zeros);
  }
}
#endif

/* d += A B for 16 numbers of the inner index. A lane has of the warp's A and D what mma_f16() says, D for each 8 of N
 * columns. N is 32 or 64. `place` is that of the first number wanted, as warpgroup_place() has it. */
template <int N_MATRICES>
static __device__ __forceinline__ void warpgroup_add(float (&d)[N_MATRICES][4], const uint32_t a[4], const half_bits *b,
                                                     size_t place)
{
#ifdef HAS_WARPGROUPS
  add_async(d, a, matrix_descriptor(b, place));
#else
  multiply_now(d, N_MATRICES, a, b + place, true);
#endif
}

/* d = A B likewise, with A [64][16] in shared memory, in the same order as 16 inner numbers of 64 columns of B. */
template <int N_MATRICES>
static __device__ __forceinline__ void warpgroup_set(float (&d)[N_MATRICES][4], const half_bits *a, const half_bits *b,
                                                     size_t place)
{
#ifdef HAS_WARPGROUPS
  multiply_async(d, matrix_descriptor(a, 0), matrix_descriptor(b, place));
#else
  uint32_t both[4];
  load_matrices(both, a + threadIdx.x / WARP_LANES % WARPGROUP_WARPS * (4 * MATRIX_HALVES) + warp_lane() * 8);
  const uint32_t mine[4] = { both[0], both[2], both[1], both[3] };
  multiply_now(d, N_MATRICES, mine, b + place, false);
#endif
}

/* Wait until at most `pending` of the newest commits are unfinished; d is of an older one. pending is 0 or 1. */
template <int N_MATRICES> static __device__ __forceinline__ void warpgroup_wait(int pending, float (&d)[N_MATRICES][4])
{
#ifdef SLUICE_CUDA_MODEL
  if (cuda_model_has_warpgroups())
    cuda_model_warpgroup_wait((unsigned)pending);
  (void)d;
#elif defined(HAS_WARPGROUPS)
  if (pending == 0)
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  else
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
#pragma unroll
  for (int i = 0; i < N_MATRICES; i++) /* nothing that uses d can move to before the wait */
    asm volatile("" : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])::"memory");
#endif
}

/* Find out what device_warps_together() returns, once before the first call of it. Returns ERR_DEVICE on failure. */
err_code_t device_find_together();

/* Warps of a block that a device takes together: WARPGROUP_WARPS, or 1 where there are no warpgroups. */
unsigned device_warps_together();

#endif
