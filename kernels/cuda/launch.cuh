/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches and CUDA errors. Hides the few places where CUDA and its model on the processor differ. */
#ifndef KERNELS_CUDA_LAUNCH_CUH
#define KERNELS_CUDA_LAUNCH_CUH

#ifdef SLUICE_CUDA_MODEL
#include "tests/support/cuda_model/cuda_model.h"
#else
#include <cuda_runtime.h>
#endif

#include "kernels/device.h"

enum { WARP_LANES = 32, SHARED_BYTES_USUAL = 48 * 1024 };

/* Record ERR_DEVICE with `what` and CUDA's error text, and return it. */
err_code_t cuda_failure(cudaError_t error, const char *what);

static inline cudaStream_t cuda_stream(struct device_stream *s)
{
  return reinterpret_cast<cudaStream_t>(s);
}

/* The block's dynamic shared memory, aligned to 128 bytes; its size is the launch's shared_bytes. */
template <class T> __device__ __forceinline__ T *shared_memory()
{
#ifdef SLUICE_CUDA_MODEL
  return reinterpret_cast<T *>(cuda_model_now.shared);
#else
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  return reinterpret_cast<T *>(shared_bytes);
#endif
}

/* The 32-bit address of a place in the block's shared memory, and the T there. With sums of such addresses, a loop does
 * not add the memory's beginning to each offset. */
static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
#ifdef SLUICE_CUDA_MODEL
  return (uint32_t)(static_cast<const unsigned char *>(p) - shared_memory<unsigned char>());
#else
  return (uint32_t)__cvta_generic_to_shared(p);
#endif
}

template <class T> __device__ __forceinline__ const T &shared_at(uint32_t address)
{
#ifdef SLUICE_CUDA_MODEL
  return *reinterpret_cast<const T *>(shared_memory<unsigned char>() + address);
#else
  return *static_cast<const T *>(__cvta_shared_to_generic(address));
#endif
}

/* Every kernel's first call: what the stream did before it has ended when this returns. On devices that can, a kernel
 * begins while the one before it ends, and its launch takes no time of its own (programmatic dependent launch). So
 * nothing may access device memory before this. Reads of constants (__ldg, __restrict__) may be moved to before this
 * call, so they are for what no kernel of the stream writes, such as items and weights. prefetch() may precede it
 * too. */
static __device__ __forceinline__ void begin_kernel()
{
#ifdef SLUICE_CUDA_MODEL
  cuda_model_begin_kernel();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Fetch n bytes into the level-2 cache. It may precede begin_kernel(): it changes no memory, and what it fetches may
 * change later. Nothing on devices before 9.0. from, n: multiples of 16.
 *
 * stays  else it is the first to leave the cache again */
static __device__ __forceinline__ void prefetch(const void *from, uint32_t n, bool stays)
{
#if !defined(SLUICE_CUDA_MODEL) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (stays)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(n));
  else
    asm volatile(
        "{ .reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, policy; }" ::"l"(__cvta_generic_to_global(from)),
        "r"(n));
#else
  (void)from;
  (void)n;
  (void)stays;
#endif
}

/* Shared memory that a block of this device can have, in bytes: at least SHARED_BYTES_USUAL, but never above `most`. */
size_t device_shared_bytes(size_t most);

/* Bytes of the device's level-2 cache; 0 if unknown. */
size_t device_cache_bytes();

#ifndef SLUICE_CUDA_MODEL
/* Can a kernel begin before the one before it has ended? Devices and kernels of 9.0 and above can. */
bool device_overlaps_launches();

template <class... Parameters, class... Arguments>
cudaError_t launch_overlapping(struct device_stream *stream, dim3 grid, unsigned n_threads, size_t shared_bytes,
                               void (*kernel)(Parameters...), Arguments... arguments)
{
  cudaLaunchAttribute overlap = {};
  cudaLaunchConfig_t config = {};

  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.gridDim = grid;
  config.blockDim = n_threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = cuda_stream(stream);
  config.attrs = &overlap;
  config.numAttrs = device_overlaps_launches();
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}
#endif

/* Launch a kernel in a stream. Its first call must be begin_kernel(). Returns ERR_DEVICE on failure. A kernel's
 * shared-memory limit belongs to the whole process, so every thread sets it to the same value: all that the device has.
 */
template <class... Parameters, class... Arguments>
err_code_t launch(struct device_stream *stream, dim3 grid, unsigned n_threads, size_t shared_bytes,
                  void (*kernel)(Parameters...), Arguments... arguments)
{
#ifdef SLUICE_CUDA_MODEL
  cudaError_t error =
      cuda_model_launch(grid, n_threads, shared_bytes, cuda_stream(stream), [=] { kernel(arguments...); });
#else
  cudaError_t error = cudaSuccess;
  if (shared_bytes > SHARED_BYTES_USUAL)
    error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)device_shared_bytes(SIZE_MAX));
  if (error == cudaSuccess)
    error = launch_overlapping(stream, grid, n_threads, shared_bytes, kernel, arguments...);
#endif
  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "cannot launch a kernel");
}

static inline unsigned blocks_for(size_t n, size_t per_block)
{
  return (unsigned)((n + per_block - 1) / per_block);
}

#endif
