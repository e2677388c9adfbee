/* SPDX-License-Identifier: Apache-2.0 */
/* device.h by calls of the CUDA runtime, which name the bytes or the step that failed. */
/* device.h by calls of the CUDA runtime. */
#include "kernels/cuda/launch.cuh"

#include <stdio.h>

static void give(void *out, void *memory)
{
  *static_cast<void **>(out) = memory;
}

static void *take(void *memory)
{
  void **at = static_cast<void **>(memory), *taken = *at;

  *at = NULL;
  return taken;
}

err_code_t cuda_failure(cudaError_t error, const char *what)
{
  cudaGetLastError(); /* clears the error if CUDA can recover from it */
  FAIL(ERR_DEVICE, "%s: %s", what, cudaGetErrorString(error));
}

size_t device_shared_bytes(size_t most)
{
  int n = 0;

  if (cudaDeviceGetAttribute(&n, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) != cudaSuccess || n < SHARED_BYTES_USUAL)
    n = SHARED_BYTES_USUAL;
  return (size_t)n < most ? (size_t)n : most;
}

/* The kernels are built for compute capability 8.0 and above. */
bool device_find(struct device *out)
{
  cudaDeviceProp properties;
  int n = 0;

  if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0 || cudaGetDeviceProperties(&properties, 0) != cudaSuccess ||
      properties.major < 8)
    return false;
  snprintf(out->name, sizeof out->name, "%s", properties.name);
  out->memory_bytes = properties.totalGlobalMem;
  out->compute_capability = 10 * properties.major + properties.minor;
  out->n_processors = properties.multiProcessorCount;
  return true;
}

err_code_t device_free_bytes(size_t *out)
{
  size_t total;
  cudaError_t error = cudaMemGetInfo(out, &total);

  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "cannot read how much GPU memory is free");
}

err_code_t device_alloc(size_t count, size_t size, void *out)
{
  void *memory;
  size_t bytes;

  if (__builtin_mul_overflow(count, size, &bytes))
    FAIL(ERR_DEVICE, "%zu times %zu bytes overflows", count, size);
  cudaError_t error = cudaMalloc(&memory, bytes ? bytes : 1);
  if (error != cudaSuccess) {
    cudaGetLastError();
    FAIL(ERR_DEVICE, "cannot allocate %zu bytes of GPU memory: %s", bytes, cudaGetErrorString(error));
  }
  give(out, memory);
  return ERR_OK;
}

void device_free(void *memory)
{
  cudaFree(take(memory));
}

err_code_t device_alloc_host(size_t count, size_t size, void *out)
{
  void *memory;
  size_t bytes;

  if (__builtin_mul_overflow(count, size, &bytes))
    FAIL(ERR_DEVICE, "%zu times %zu bytes overflows", count, size);
  cudaError_t error = cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocDefault);
  if (error != cudaSuccess) {
    cudaGetLastError();
    FAIL(ERR_DEVICE, "cannot pin %zu bytes of host memory: %s", bytes, cudaGetErrorString(error));
  }
  give(out, memory);
  return ERR_OK;
}

void device_free_host(void *memory)
{
  cudaFreeHost(take(memory));
}

err_code_t device_stream_open(struct device_stream **out)
{
  cudaStream_t stream;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

  if (error != cudaSuccess)
    return cuda_failure(error, "cannot open a stream");
  *out = reinterpret_cast<struct device_stream *>(stream);
  return ERR_OK;
}

void device_stream_close(struct device_stream **s)
{
  if (*s) {
    cudaStreamSynchronize(cuda_stream(*s)); /* its work still uses memory that the caller frees next */
    cudaStreamDestroy(cuda_stream(*s));
  }
  *s = NULL;
}

static err_code_t copy(struct device_stream *s, void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
  cudaError_t error = bytes ? cudaMemcpyAsync(to, from, bytes, kind, cuda_stream(s)) : cudaSuccess;

  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "cannot start a copy");
}

err_code_t device_copy_in(struct device_stream *s, void *to, const void *from, size_t bytes)
{
  return copy(s, to, from, bytes, cudaMemcpyHostToDevice);
}

err_code_t device_copy_out(struct device_stream *s, void *to, const void *from, size_t bytes)
{
  return copy(s, to, from, bytes, cudaMemcpyDeviceToHost);
}

err_code_t device_copy(struct device_stream *s, void *to, const void *from, size_t bytes)
{
  return copy(s, to, from, bytes, cudaMemcpyDeviceToDevice);
}

err_code_t device_fill(struct device_stream *s, void *memory, int byte, size_t bytes)
{
  cudaError_t error = bytes ? cudaMemsetAsync(memory, byte, bytes, cuda_stream(s)) : cudaSuccess;

  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "cannot fill GPU memory");
}

err_code_t device_wait(struct device_stream *s)
{
  cudaError_t error = cudaStreamSynchronize(cuda_stream(s));

  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "work on the GPU failed");
}
