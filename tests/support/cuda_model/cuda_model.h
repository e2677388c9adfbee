/* SPDX-License-Identifier: Apache-2.0 */
/* A model of a CUDA device on the processor, for tests. The sources of kernels/cuda compile against it unchanged.
 *
 * Each thread of a block is a fiber. It runs until it has to wait for other threads, at __syncthreads() or in a warp
 * operation. Up to four blocks run at a time; blocks, warps and lanes take turns in random order, by SLUICE_SEED. What
 * goes wrong stops the program with a message: a deadlock, a misaligned asynchronous copy, an access behind an array or
 * to freed memory, a host that touches device memory.
 *
 * What may be late is late. An asynchronous copy to shared memory happens when its thread waits for it; until then
 * there are NaNs. The same holds for products of a warpgroup. Copies and kernels run only when their stream is waited
 * for, which reveals host code that reads or reuses memory too early; or at once; or one or the other at random:
 * cuda_model_control.h has the modes. Pinned memory must not change between a copy's start and the wait. New memory,
 * including shared memory, is filled with garbage.
 *
 * In the mode `watch` each access of a kernel is checked for races and for memory that nobody wrote
 * (cuda_model_watch.cc).
 *
 * The model shows neither speed nor weak memory ordering. Nor does it show how a particular tensor core rounds: a test
 * chooses among known ways (cuda_model_control.h).
 */
#ifndef CUDA_MODEL_H
#define CUDA_MODEL_H

#include <functional>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
  {
  }
};

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

/* The thread that is running. It is constant-initialised, so no use has to check for a constructor: the sanitizer
 * reports GCC's code for that check as a null pointer. */
struct cuda_model_thread {
  dim3 thread, block, block_size, grid;
  unsigned char *shared = NULL;
};
extern __constinit thread_local struct cuda_model_thread cuda_model_now;

#define threadIdx (cuda_model_now.thread)
#define blockIdx  (cuda_model_now.block)
#define blockDim  (cuda_model_now.block_size)
#define gridDim   (cuda_model_now.grid)

void cuda_model_begin_kernel();
void __syncthreads();
void cuda_model_group_sync(unsigned n); /* the same for n threads from a multiple of n on */
void __syncwarp();
void __threadfence();

enum { CUDA_MODEL_WARP_BYTES = 64 };

/* Exchange n bytes between the 32 lanes of a warp: every lane gives its own and gets all. */
const unsigned char (*cuda_model_exchange(const void *mine, size_t n))[CUDA_MODEL_WARP_BYTES];

template <class T> T cuda_model_from(T value, unsigned lane)
{
  const unsigned char(*all)[CUDA_MODEL_WARP_BYTES] = cuda_model_exchange(&value, sizeof value);
  T result;
  memcpy(&result, all[lane % 32], sizeof result);
  return result;
}

static inline unsigned cuda_model_lane()
{
  return cuda_model_now.thread.x % 32;
}

template <class T> T __shfl_sync(unsigned, T value, int lane)
{
  return cuda_model_from(value, (unsigned)lane);
}
template <class T> T __shfl_xor_sync(unsigned, T value, int mask)
{
  return cuda_model_from(value, cuda_model_lane() ^ (unsigned)mask);
}
template <class T> T __shfl_down_sync(unsigned, T value, unsigned delta)
{
  unsigned lane = cuda_model_lane();
  return cuda_model_from(value, lane + delta < 32 ? lane + delta : lane);
}
template <class T> T __shfl_up_sync(unsigned, T value, unsigned delta)
{
  unsigned lane = cuda_model_lane();
  return cuda_model_from(value, lane >= delta ? lane - delta : lane);
}
unsigned __ballot_sync(unsigned mask, int predicate);
static inline int __any_sync(unsigned mask, int predicate)
{
  return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
  return __ballot_sync(mask, !predicate) == 0;
}

/* Atomic operations access memory only through these two, which count as one atomic access. */
void cuda_model_atomic_read(void *to, const void *from, size_t n);
void cuda_model_atomic_write(void *to, const void *from, size_t n);

template <class T, class F> T cuda_model_atomic(T *p, F change)
{
  T old, changed;
  cuda_model_atomic_read(&old, p, sizeof old);
  changed = change(old);
  cuda_model_atomic_write(p, &changed, sizeof changed);
  return old;
}
template <class T> T atomicAdd(T *p, T value)
{
  return cuda_model_atomic(p, [=](T old) { return (T)(old + value); });
}
template <class T> T atomicMax(T *p, T value)
{
  return cuda_model_atomic(p, [=](T old) { return old > value ? old : value; });
}
template <class T> T atomicMin(T *p, T value)
{
  return cuda_model_atomic(p, [=](T old) { return old < value ? old : value; });
}
template <class T> T atomicOr(T *p, T value)
{
  return cuda_model_atomic(p, [=](T old) { return old | value; });
}
template <class T> T atomicExch(T *p, T value)
{
  return cuda_model_atomic(p, [=](T) { return value; });
}

/* cp.async of n bytes, 4, 8 or 16; cp.async.commit_group and cp.async.wait_group. */
void cuda_model_copy_async(void *shared, const void *global, size_t n);
void cuda_model_copy_async_commit();
void cuda_model_copy_async_wait(unsigned pending);

/* The asynchronous products of a warpgroup: four warps that call these together. d: [n][4] sums of 8 columns each, as
 * cuda_model_mma_f16() has them. b: [n][2][8][8] halves in shared memory. */
bool cuda_model_has_warpgroups(); /* unless tensor cores are Ampere's */
bool cuda_model_warpgroup_any(bool is_true);
void cuda_model_warpgroup_begin();
void cuda_model_warpgroup_multiply(float *d, unsigned n, const uint32_t a[4], const uint16_t *b, bool adds);
void cuda_model_warpgroup_commit();
void cuda_model_warpgroup_wait(unsigned pending);

static inline int __popc(unsigned x)
{
  return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
  return __builtin_popcountll(x);
}
static inline int __ffsll(long long x)
{
  return __builtin_ffsll(x);
}
static inline int __ffs(int x)
{
  return __builtin_ffs(x);
}
static inline int __clz(int x)
{
  return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
static inline unsigned __float_as_uint(float x)
{
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float __uint_as_float(unsigned bits)
{
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline int __float_as_int(float x)
{
  return (int)__float_as_uint(x);
}
static inline float __int_as_float(int bits)
{
  return __uint_as_float((unsigned)bits);
}
template <class T> T __ldg(const T *p)
{
  return *p;
}
template <class T> T __ldcs(const T *p)
{
  return *p;
}
template <class T> T min(T a, T b)
{
  return b < a ? b : a;
}
template <class T> T max(T a, T b)
{
  return a < b ? b : a;
}

/* The part of the CUDA runtime that kernels/cuda uses. */
enum cudaError_t {
  cudaSuccess,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidValue,
  cudaErrorNotReady,
  cudaErrorInsufficientDriver,
  cudaErrorUnknown
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking = 1, cudaHostAllocDefault = 0, cudaDeviceScheduleBlockingSync = 4 };

enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin, cudaDevAttrL2CacheSize };

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major, minor, multiProcessorCount;
};

typedef struct cuda_model_stream *cudaStream_t;
typedef struct cuda_model_event *cudaEvent_t;

cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr attribute, int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream); /* the model has to run the work to be asked again: it waits */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *out); /* events take their time from the processor's clock */
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t error);

/* Run `body` once for each thread of each block, when the stream is waited for. */
cudaError_t cuda_model_launch(dim3 grid, unsigned n_threads, size_t shared_bytes, cudaStream_t stream,
                              std::function<void()> body);

#endif
