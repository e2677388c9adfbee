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

/* Shared memory that a block of this device can have, in bytes: at least SHARED_BYTES_USUAL, but never above `most`. */
size_t device_shared_bytes(size_t most);

/* Launch a kernel in a stream. Returns ERR_DEVICE on failure. A kernel's shared-memory limit belongs to the whole
 * process, so every thread sets it to the same value: all that the device has. */
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
  if (error == cudaSuccess) {
    kernel<<<grid, n_threads, shared_bytes, cuda_stream(stream)>>>(arguments...);
    error = cudaGetLastError();
  }
#endif
  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "cannot launch a kernel");
}

static inline unsigned blocks_for(size_t n, size_t per_block)
{
  return (unsigned)((n + per_block - 1) / per_block);
}

#endif
