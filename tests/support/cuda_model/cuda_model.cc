/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime's functions on the model of a device: streams, copies, memory, events, and failures on request. */
#include "tests/support/cuda_model/cuda_model.h"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#include "tests/support/cuda_model/cuda_model_control.h"
#include "tests/support/cuda_model/cuda_model_parts.h"

/* Pinned memory that a copy to the device reads, and its checksum at the copy's start. */
struct sent {
  const void *from;
  size_t bytes;
  uint64_t sum;
};

struct cuda_model_stream {
  std::vector<std::function<void()>> work;
  std::vector<sent> sents;
};

enum stream_mode { LAZY, EAGER, MIXED };

static std::atomic<bool> is_present{ false };
enum { RUNTIME_VERSION = 13000 };
static std::atomic<int> driver_version{ RUNTIME_VERSION };
static std::atomic<size_t> memory_bytes{ (size_t)16 << 30 };
static std::atomic<size_t> shared_bytes_most{ 227 * 1024 };
static std::atomic<size_t> n_used{ 0 };
static std::atomic<size_t> n_calls{ 0 };
static std::atomic<size_t> n_waits{ 0 };
static std::atomic<size_t> n_copies{ 0 };
static std::atomic<size_t> fail_at{ 0 };
static std::atomic<stream_mode> mode{ LAZY };
static thread_local cudaError_t last_error;

static bool is_word(const char *text, size_t n, const char *word)
{
  return n == strlen(word) && memcmp(text, word, n) == 0;
}

__attribute__((constructor)) static void read_environment()
{
  const char *text = getenv("SLUICE_CUDA_MODEL");

  while (text && *text) {
    size_t n = strcspn(text, ",");
    if (strncmp(text, "fail:", 5) == 0)
      cuda_model_fail_after(strtoul(text + 5, NULL, 10));
    else if (is_word(text, n, "eager"))
      mode = EAGER;
    else if (is_word(text, n, "mixed"))
      mode = MIXED;
    else if (is_word(text, n, "ampere"))
      cuda_model_set_tensor_cores(CUDA_MODEL_AMPERE);
    else if (is_word(text, n, "hopper"))
      cuda_model_set_tensor_cores(CUDA_MODEL_HOPPER);
    else if (is_word(text, n, "watch"))
      cuda_model_watch_start(); /* does nothing to kernels compiled without -fsanitize=thread */
    else if (!is_word(text, n, "on"))
      cuda_model_stop("SLUICE_CUDA_MODEL has an unknown word: %s", text);
    is_present = true;
    text += n + (text[n] == ',');
  }
}

extern "C" void cuda_model_set_present(bool present)
{
  is_present = present;
}

extern "C" void cuda_model_set_driver(int version)
{
  driver_version = version;
}

extern "C" void cuda_model_set_memory(size_t bytes)
{
  memory_bytes = bytes;
}

extern "C" void cuda_model_set_shared(size_t bytes)
{
  shared_bytes_most = bytes;
}

extern "C" const char *cuda_model_modes(void)
{
  const char *text = getenv("SLUICE_CUDA_MODEL");

  return text ? text : "on";
}

extern "C" void cuda_model_fail_after(size_t n)
{
  fail_at = n == 0 ? 0 : n_calls + n;
}

extern "C" size_t cuda_model_calls(void)
{
  return n_calls;
}

extern "C" size_t cuda_model_waits(void)
{
  return n_waits;
}

extern "C" size_t cuda_model_copies(void)
{
  return n_copies;
}

static bool fails()
{
  size_t call = ++n_calls, at = fail_at;

  return at != 0 && call >= at;
}

cudaError_t cudaSetDeviceFlags(unsigned)
{
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
  *version = driver_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
  *version = RUNTIME_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
  if (driver_version < RUNTIME_VERSION)
    return cudaErrorInsufficientDriver;
  *n = is_present ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int)
{
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "model of a device");
  out->totalGlobalMem = memory_bytes;
  out->major = 9;
  out->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr attribute, int)
{
  *out = attribute == cudaDevAttrL2CacheSize ? 50 << 20 : (int)shared_bytes_most;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  if (fails())
    return cudaErrorUnknown;
  *total_bytes = memory_bytes;
  *free_bytes = memory_bytes - n_used;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
  if (fails() || n_used + bytes > memory_bytes)
    return cudaErrorMemoryAllocation;
  void *memory = cuda_model_allocate(bytes);
  if (!memory)
    return cudaErrorMemoryAllocation;
  n_used += bytes;
  *out = memory;
  return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
  if (memory)
    n_used -= cuda_model_release(memory);
  return cudaSuccess;
}

/* Pinned memory is on the heap, where the address sanitizer checks it. */
static std::mutex pinned_lock;
static std::map<const unsigned char *, size_t> pinned; /* bytes, by address */

static bool is_pinned(const void *p)
{
  std::lock_guard<std::mutex> guard(pinned_lock);
  auto after = pinned.upper_bound((const unsigned char *)p);

  return after != pinned.begin() && (const unsigned char *)p < std::prev(after)->first + std::prev(after)->second;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned)
{
  if (fails())
    return cudaErrorMemoryAllocation;
  *out = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*out)
    return cudaErrorMemoryAllocation;
  memset(*out, CUDA_MODEL_GARBAGE, bytes < (1 << 20) ? bytes : 1 << 20);
  std::lock_guard<std::mutex> guard(pinned_lock);
  pinned[(const unsigned char *)*out] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
  std::lock_guard<std::mutex> guard(pinned_lock);

  if (memory && pinned.erase((const unsigned char *)memory) == 0)
    cuda_model_stop("cudaFreeHost of %p, which cudaHostAlloc did not return", memory);
  free(memory);
  return cudaSuccess;
}

static uint64_t checksum(const void *from, size_t bytes)
{
  const unsigned char *p = (const unsigned char *)from;
  uint64_t sum = bytes, word;

  for (; bytes >= sizeof word; bytes -= sizeof word, p += sizeof word) {
    memcpy(&word, p, sizeof word);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  for (; bytes > 0; bytes--)
    sum = (sum ^ *p++) * 0x9e3779b97f4a7c15u;
  return sum;
}

/* Do what a stream has to do, as the device. */
static void flush(cudaStream_t stream)
{
  std::vector<std::function<void()>> work;

  work.swap(stream->work);
  if (work.empty())
    return;
  cuda_model_enter();
  for (auto &step : work)
    step();
  cuda_model_leave();
}

static void add_work(cudaStream_t stream, std::function<void()> step)
{
  stream->work.push_back(std::move(step));
  if (mode == EAGER || (mode == MIXED && cuda_model_random() % 4 == 0))
    flush(stream);
}

static void check_sent(cudaStream_t stream)
{
  for (const sent &s : stream->sents)
    if (checksum(s.from, s.bytes) != s.sum)
      cuda_model_stop("the host changed pinned memory at %p (%zu bytes) between a copy from there and the wait", s.from,
                      s.bytes);
  stream->sents.clear();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
  if (fails())
    return cudaErrorUnknown;
  *out = new cuda_model_stream;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
  n_waits++;
  if (fails()) {
    stream->work.clear();
    stream->sents.clear();
    return cudaErrorUnknown;
  }
  check_sent(stream);
  flush(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
  return cudaStreamSynchronize(stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
  n_copies += kind != cudaMemcpyDeviceToDevice;
  if (fails())
    return cudaErrorUnknown;
  if (cuda_model_is_device(to) == (kind == cudaMemcpyDeviceToHost) ||
      cuda_model_is_device(from) == (kind == cudaMemcpyHostToDevice))
    cuda_model_stop("a copy's kind and its addresses %p, %p do not agree", to, from);
  if (kind == cudaMemcpyHostToDevice && is_pinned(from))
    stream->sents.push_back({ from, bytes, checksum(from, bytes) });
  add_work(stream, [=] {
    cuda_model_watch_copy(to, from, bytes);
    memcpy(to, from, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
  if (fails())
    return cudaErrorUnknown;
  add_work(stream, [=] {
    cuda_model_watch_fill(memory, bytes);
    memset(memory, byte, bytes);
  });
  return cudaSuccess;
}

struct cuda_model_event {
  std::chrono::steady_clock::time_point time;
  cudaStream_t stream;
};

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
  if (fails())
    return cudaErrorUnknown;
  *out = new cuda_model_event();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
  if (fails())
    return cudaErrorUnknown;
  event->stream = stream;
  add_work(stream, [=] { event->time = std::chrono::steady_clock::now(); });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
  return event->stream ? cudaStreamSynchronize(event->stream) : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
  cudaError_t error = last_error;

  last_error = cudaSuccess;
  return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
  switch (error) {
  case cudaSuccess:
    return "no error";
  case cudaErrorMemoryAllocation:
    return "out of memory";
  case cudaErrorInvalidValue:
    return "invalid value";
  default:
    return "unspecified launch failure";
  }
}

cudaError_t cuda_model_launch(dim3 grid, unsigned n_threads, size_t shared_bytes, cudaStream_t stream,
                              std::function<void()> body)
{
  if (shared_bytes > shared_bytes_most || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
    return cudaErrorInvalidValue;
  if (fails())
    return cudaErrorUnknown;
  add_work(stream, [=] { cuda_model_run(grid, n_threads, shared_bytes, body); });
  return cudaSuccess;
}
