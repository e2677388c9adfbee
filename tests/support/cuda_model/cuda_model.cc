/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels on the processor: a scheduler of fibers, warp operations, lazy streams, and guarded memory. */
#include "cuda_model.h"

#include <atomic>
#include <chrono>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <vector>

#include "cuda_model_control.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 128 * 1024, WARP = 32, GARBAGE = 0xcb };

enum fiber_state { READY, AT_BLOCK, AT_WARP, DONE };

struct fiber {
  void *stack_pointer;
  unsigned char *stack;
  fiber_state state;
};

struct warp {
  unsigned n_arrived;
  unsigned parity;
  unsigned char bytes[2][WARP][CUDA_MODEL_WARP_BYTES];
};

/* A host thread's running block. */
struct machine {
  std::vector<fiber> fibers;
  std::vector<warp> warps;
  unsigned n_threads, n_at_block, n_done, current;
  void *scheduler_stack_pointer;
  const std::function<void()> *body;
};

__constinit thread_local struct cuda_model_thread cuda_model_now;
static thread_local machine m;
#if defined(__SANITIZE_ADDRESS__)
static thread_local const void *scheduler_bottom;
static thread_local size_t scheduler_size;
#endif

/* Save the callee-saved registers, switch stacks, and restore. */
extern "C" void cuda_model_switch(void **save, void *to);
__asm__(".text\n"
        ".globl cuda_model_switch\n"
        "cuda_model_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n");

static void stop(const char *what)
{
  fprintf(stderr, "cuda_model: %s (block %u, thread %u)\n", what, cuda_model_now.block.x, m.current);
  abort();
}

/* Switch from a fiber to the scheduler. */
static void yield(bool is_last)
{
  (void)is_last;
#if defined(__SANITIZE_ADDRESS__)
  void *fake = NULL;
  __sanitizer_start_switch_fiber(is_last ? NULL : &fake, scheduler_bottom, scheduler_size);
#endif
  cuda_model_switch(&m.fibers[m.current].stack_pointer, m.scheduler_stack_pointer);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, &scheduler_bottom, &scheduler_size);
#endif
}

static void fiber_main()
{
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(NULL, &scheduler_bottom, &scheduler_size);
#endif
  (*m.body)();
  m.fibers[m.current].state = DONE;
  m.n_done++;
  yield(true);
}

static void prepare_fiber(fiber *f)
{
  if (!f->stack) {
    void *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      stop("no memory for a stack");
    f->stack = (unsigned char *)memory;
  }
#if defined(__SANITIZE_ADDRESS__)
  /* A fiber that has ended never returns from yield(), so the frame of that call would stay poisoned. */
  __asan_unpoison_memory_region(f->stack + STACK_BYTES - 4096, 4096);
#endif
  void **top = (void **)(f->stack + STACK_BYTES) - 1; /* aligned as on entry to a function: 16 n + 8 */
  *--top = (void *)fiber_main;
  for (int i = 0; i < 6; i++)
    *--top = NULL;
  f->stack_pointer = top;
  f->state = READY;
}

static void resume(unsigned thread)
{
  m.current = thread;
  cuda_model_now.thread = dim3(thread, 0, 0);
#if defined(__SANITIZE_ADDRESS__)
  void *fake = NULL;
  __sanitizer_start_switch_fiber(&fake, m.fibers[thread].stack, STACK_BYTES);
#endif
  cuda_model_switch(&m.scheduler_stack_pointer, m.fibers[thread].stack_pointer);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

static void wait_in(fiber_state state)
{
  m.fibers[m.current].state = state;
  yield(false);
}

void __syncthreads()
{
  if (++m.n_at_block < m.n_threads) {
    wait_in(AT_BLOCK);
    return;
  }
  m.n_at_block = 0;
  for (unsigned i = 0; i < m.n_threads; i++) {
    if (i != m.current && m.fibers[i].state != AT_BLOCK)
      stop("one thread is at __syncthreads(), another at something else");
    m.fibers[i].state = READY;
  }
}

const unsigned char (*cuda_model_exchange(const void *mine, size_t n))[CUDA_MODEL_WARP_BYTES]
{
  unsigned first = m.current / WARP * WARP;
  warp *w = &m.warps[m.current / WARP];
  unsigned parity = w->parity;

  if (n > CUDA_MODEL_WARP_BYTES)
    stop("a warp operation has too many bytes");
  memcpy(w->bytes[parity][m.current % WARP], mine, n);
  if (++w->n_arrived < WARP) {
    wait_in(AT_WARP);
  } else {
    w->n_arrived = 0;
    w->parity = 1 - parity;
    for (unsigned i = first; i < first + WARP; i++) {
      if (i != m.current && m.fibers[i].state != AT_WARP)
        stop("one lane is at a warp operation, another at something else");
      m.fibers[i].state = READY;
    }
  }
  return w->bytes[parity];
}

void __syncwarp()
{
  cuda_model_exchange("", 1);
}

void __threadfence()
{
}

unsigned __ballot_sync(unsigned, int predicate)
{
  unsigned char mine = predicate != 0;
  const unsigned char(*all)[CUDA_MODEL_WARP_BYTES] = cuda_model_exchange(&mine, 1);
  unsigned mask = 0;

  for (unsigned i = 0; i < WARP; i++)
    mask |= (unsigned)all[i][0] << i;
  return mask;
}

static void run_block(unsigned seed)
{
  unsigned n_warps = m.n_threads / WARP;

  m.n_at_block = m.n_done = 0;
  for (unsigned i = 0; i < m.n_threads; i++)
    prepare_fiber(&m.fibers[i]);
  for (unsigned w = 0; w < n_warps; w++)
    m.warps[w].n_arrived = m.warps[w].parity = 0;
  while (m.n_done < m.n_threads) {
    bool is_moving = false;
    seed = seed * 1664525u + 1013904223u;
    for (unsigned i = 0; i < m.n_threads; i++) {
      unsigned thread = (i / WARP + (seed >> 16)) % n_warps * WARP + i % WARP;
      if (m.fibers[thread].state == READY) {
        resume(thread);
        is_moving = true;
      }
    }
    if (!is_moving)
      stop("deadlock: threads wait for others that have ended or that wait for something else");
  }
}

static void run(dim3 grid, unsigned n_threads, size_t shared_bytes, const std::function<void()> &body)
{
  static thread_local unsigned seed = 1;

  if (n_threads % WARP || n_threads == 0 || n_threads > 1024)
    stop("a block must have whole warps, at most 32");
  m.n_threads = n_threads;
  m.body = &body;
  if (m.fibers.size() < n_threads)
    m.fibers.resize(n_threads);
  if (m.warps.size() < n_threads / WARP)
    m.warps.resize(n_threads / WARP);
  unsigned char *shared = (unsigned char *)aligned_alloc(128, (shared_bytes + 128) / 128 * 128);
  for (unsigned z = 0; z < grid.z; z++) {
    for (unsigned y = 0; y < grid.y; y++) {
      for (unsigned x = 0; x < grid.x; x++) {
        memset(shared, GARBAGE, shared_bytes);
        cuda_model_now.block = dim3(x, y, z);
        cuda_model_now.block_size = dim3(n_threads);
        cuda_model_now.grid = grid;
        cuda_model_now.shared = shared;
        run_block(seed++);
      }
    }
  }
  free(shared);
}

/* The CUDA runtime's functions. */

struct cuda_model_stream {
  std::vector<std::function<void()>> work;
};

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
static thread_local cudaError_t last_error;

__attribute__((constructor)) static void read_environment()
{
  const char *text = getenv("SLUICE_CUDA_MODEL");

  if (!text)
    return;
  is_present = true;
  if (strncmp(text, "fail:", 5) == 0)
    cuda_model_fail_after(strtoul(text + 5, NULL, 10));
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

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr, int)
{
  *out = (int)shared_bytes_most;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  *total_bytes = memory_bytes;
  *free_bytes = memory_bytes - n_used;
  return cudaSuccess;
}

/* Allocate memory with its size stored in front of it. */
static cudaError_t allocate(void **out, size_t bytes)
{
  unsigned char *memory = (unsigned char *)aligned_alloc(256, (bytes + 511) / 256 * 256);

  if (!memory)
    return cudaErrorMemoryAllocation;
  memcpy(memory, &bytes, sizeof bytes);
  /* Fill only the first 4 MiB. Large arrays are mostly unused in tests, and untouched pages cost no memory. */
  memset(memory + 256, GARBAGE, bytes < (1 << 22) ? bytes : 1 << 22);
  *out = memory + 256;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
  if (fails() || n_used + bytes > memory_bytes)
    return cudaErrorMemoryAllocation;
  n_used += bytes;
  return allocate(out, bytes);
}

cudaError_t cudaFree(void *memory)
{
  if (memory) {
    size_t bytes;
    memcpy(&bytes, (unsigned char *)memory - 256, sizeof bytes);
    n_used -= bytes;
    free((unsigned char *)memory - 256);
  }
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned)
{
  return fails() ? cudaErrorMemoryAllocation : allocate(out, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
  if (memory)
    free((unsigned char *)memory - 256);
  return cudaSuccess;
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
  std::vector<std::function<void()>> work;

  work.swap(stream->work);
  n_waits++;
  if (fails())
    return cudaErrorUnknown;
  for (auto &step : work)
    step();
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
  stream->work.push_back([=] { memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
  if (fails())
    return cudaErrorUnknown;
  stream->work.push_back([=] { memset(memory, byte, bytes); });
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
  stream->work.push_back([=] { event->time = std::chrono::steady_clock::now(); });
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
  stream->work.push_back([=] { run(grid, n_threads, shared_bytes, body); });
  return cudaSuccess;
}
