/* SPDX-License-Identifier: Apache-2.0 */
/* device.h by calls of the CUDA runtime. Errors name the bytes or the step that failed. */
#include "kernels/cuda/warpgroup.cuh"

#include <atomic>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* How long a wait polls before it sleeps. To be woken takes up to 0.2 ms: too much for a search of that length, little
 * for one of several milliseconds, during which polling would keep a core busy. */
static const long long POLL_NS = 1000000;

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

size_t device_cache_bytes()
{
  int n = 0;

  return cudaDeviceGetAttribute(&n, cudaDevAttrL2CacheSize, 0) == cudaSuccess && n > 0 ? (size_t)n : 0;
}

#ifndef SLUICE_CUDA_MODEL
static __global__ void nothing()
{
  begin_kernel();
}

/* Were the kernels that run here compiled for 9.0 or above, so that begin_kernel() waits? */
static bool kernels_wait()
{
  cudaFuncAttributes attributes;

  return cudaFuncGetAttributes(&attributes, nothing) == cudaSuccess && attributes.ptxVersion >= 90;
}

bool device_overlaps_launches()
{
  static const bool overlaps = kernels_wait();

  return overlaps;
}

/* Its launch bound tells whether the code that runs here was compiled with products of warpgroups. */
#ifdef HAS_WARPGROUPS
static __global__ void __launch_bounds__(WARPGROUP_THREADS) together()
#else
static __global__ void __launch_bounds__(WARP_LANES) together()
#endif
{
  begin_kernel();
}

/* What device_find_together() has found; a launch must not guess it. */
static std::atomic<unsigned> n_together;

err_code_t device_find_together()
{
  cudaFuncAttributes attributes;
  cudaError_t error = cudaFuncGetAttributes(&attributes, together);

  if (error != cudaSuccess)
    return cuda_failure(error, "cannot read a kernel's attributes");
  n_together = attributes.binaryVersion == 90 && attributes.maxThreadsPerBlock >= WARPGROUP_THREADS
                   ? (unsigned)WARPGROUP_WARPS
                   : 1;
  return ERR_OK;
}

unsigned device_warps_together()
{
  return n_together;
}
#else
err_code_t device_find_together()
{
  return ERR_OK;
}

unsigned device_warps_together()
{
  return cuda_model_has_warpgroups() ? WARPGROUP_WARPS : 1;
}
#endif

/* Set what holds for the whole process, before CUDA starts. Waits that do not poll sleep. Kernels are loaded at once:
 * else each would take memory at its first launch, after the memory was counted, and a driver that compiles them would
 * do so during queries. The environment may choose otherwise. */
static void set_up_process()
{
  static bool is_set_up;

  if (is_set_up)
    return;
  is_set_up = true;
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
  cudaGetLastError(); /* an error shows again in the calls that follow */
}

/* Why the runtime cannot start, with the versions that an old driver is about. 12040 is 12.4. */
static err_code_t fail_to_start(cudaError_t error)
{
  int driver = 0, runtime = 0;

  cudaGetLastError();
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    FAIL(ERR_DEVICE, "the NVIDIA driver's library libcuda was not found, or cannot start");
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess && driver / 1000 < runtime / 1000)
    FAIL(ERR_DEVICE, "the NVIDIA driver supports CUDA %d.%d, but this build needs %d.%d: update the driver",
         driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  FAIL(ERR_DEVICE, "CUDA cannot start: %s", cudaGetErrorString(error));
}

/* The kernels are built for compute capability 8.0 and above. */
err_code_t device_find(struct device *out)
{
  cudaDeviceProp properties;
  int n = 0;

  set_up_process();
  cudaError_t error = cudaGetDeviceCount(&n);
  if (error != cudaSuccess)
    return fail_to_start(error);
  if (n == 0)
    FAIL(ERR_DEVICE, "the NVIDIA driver shows no GPU to this process");
  error = cudaGetDeviceProperties(&properties, 0);
  if (error != cudaSuccess)
    return fail_to_start(error);
  if (properties.major < 8)
    FAIL(ERR_DEVICE, "%s has compute capability %d.%d; 8.0 is needed", properties.name, properties.major,
         properties.minor);
  snprintf(out->name, sizeof out->name, "%s", properties.name);
  out->memory_bytes = properties.totalGlobalMem;
  out->compute_capability = 10 * properties.major + properties.minor;
  out->n_processors = properties.multiProcessorCount;
  return ERR_OK;
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

static long long now_ns()
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

err_code_t device_wait(struct device_stream *s)
{
  long long until = now_ns() + POLL_NS;
  cudaError_t error = cudaStreamQuery(cuda_stream(s));

  while (error == cudaErrorNotReady && now_ns() < until)
    error = cudaStreamQuery(cuda_stream(s));
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    error = cudaStreamSynchronize(cuda_stream(s));
  }
  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "work on the GPU failed");
}
