/* SPDX-License-Identifier: Apache-2.0 */
/* The model's device memory: addresses of its own, with unmapped pages between the arrays, and protected from the host
 * while no thread works as the device. */
#include <mutex>
#include <map>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/cuda_model/cuda_model_parts.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(p, n)   ((void)(p), (void)(n))
#define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#endif

enum { PAGE = 4096, ALIGNMENT = 256, SHARED_ALIGNMENT = 128, FILLED_MOST = 1 << 20 };
enum { HOW = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

struct array {
  unsigned char *pages;
  size_t bytes, page_bytes;
};

unsigned char *cuda_model_space;
static std::mutex lock;
static std::map<void *, array> *arrays; /* by address */
static size_t next_page;                /* offset of the first page that was never used */
static unsigned n_inside;               /* threads that work as the device */
static struct sigaction before_us;

static bool is_wanted(const char *name)
{
  const char *text = getenv(name);

  return !text || strcmp(text, "off") != 0;
}

/* A fault in device memory is the host's, or a kernel's behind an array. Any other is not our business. */
static void on_fault(int, siginfo_t *info, void *)
{
  if (cuda_model_is_device(info->si_addr)) {
    if (n_inside == 0)
      cuda_model_stop("the host touches device memory at %p", info->si_addr);
    cuda_model_stop("there is no device memory at %p: it is behind an array, or was freed", info->si_addr);
  }
  sigaction(SIGSEGV, &before_us, NULL); /* and fault again */
}

static void reserve_space()
{
  void *memory = mmap(NULL, CUDA_MODEL_SPACE, PROT_NONE, HOW, -1, 0);
  struct sigaction action = {};

  if (memory == MAP_FAILED)
    cuda_model_stop("no addresses for device memory");
  cuda_model_space = (unsigned char *)memory;
  arrays = new std::map<void *, array>;
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before_us);
}

/* Take pages for an array that ends, but for its alignment, at the end of the last one. One more stays unmapped. */
static array take_pages(size_t bytes)
{
  array a = { NULL, bytes, (bytes + PAGE) / PAGE * PAGE };

  if (!cuda_model_space)
    reserve_space();
  if (next_page + a.page_bytes + PAGE > CUDA_MODEL_SPACE)
    cuda_model_stop("device memory has no addresses left");
  a.pages = cuda_model_space + next_page;
  next_page += a.page_bytes + PAGE;
  return a;
}

static bool map_pages(const array &a)
{
  return mmap(a.pages, a.page_bytes, PROT_READ | PROT_WRITE, HOW | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool protects()
{
  static const bool wanted = is_wanted("SLUICE_CUDA_MODEL_PROTECT");

  return wanted;
}

static void protect(const array &a)
{
  if (mprotect(a.pages, a.page_bytes, n_inside > 0 || !protects() ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
    cuda_model_stop("mprotect failed");
}

void *cuda_model_allocate(size_t bytes)
{
  std::lock_guard<std::mutex> guard(lock);
  array a = take_pages(bytes);

  if (!map_pages(a))
    return NULL;
  unsigned char *p = a.pages + a.page_bytes - (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  /* Fill only the first MiB. Large arrays are mostly unused in tests, and untouched pages cost no memory. */
  memset(p, CUDA_MODEL_GARBAGE, bytes < FILLED_MOST ? bytes : (size_t)FILLED_MOST);
  __asan_poison_memory_region(a.pages, (size_t)(p - a.pages));
  __asan_poison_memory_region(p + bytes, (size_t)(a.pages + a.page_bytes - (p + bytes)));
  protect(a);
  (*arrays)[p] = a;
  return p;
}

size_t cuda_model_release(void *memory)
{
  std::lock_guard<std::mutex> guard(lock);
  auto found = arrays ? arrays->find(memory) : std::map<void *, array>::iterator{};

  if (!arrays || found == arrays->end())
    cuda_model_stop("cudaFree of %p, which cudaMalloc did not return", memory);
  array a = found->second;
  arrays->erase(found);
  __asan_unpoison_memory_region(a.pages, a.page_bytes);
  mmap(a.pages, a.page_bytes, PROT_NONE, HOW | MAP_FIXED, -1, 0);
  cuda_model_watch_forget(a.pages, a.page_bytes);
  return a.bytes;
}

void cuda_model_enter()
{
  std::lock_guard<std::mutex> guard(lock);

  if (n_inside++ == 0 && arrays && protects())
    for (auto &entry : *arrays)
      protect(entry.second);
}

void cuda_model_leave()
{
  std::lock_guard<std::mutex> guard(lock);

  if (--n_inside == 0 && arrays && protects())
    for (auto &entry : *arrays)
      protect(entry.second);
}

unsigned char *cuda_model_allocate_shared(size_t most)
{
  std::lock_guard<std::mutex> guard(lock);
  array a = take_pages(most / PAGE * PAGE + PAGE - 1);

  if (!map_pages(a))
    cuda_model_stop("no memory for a block");
  return a.pages + a.page_bytes;
}

unsigned char *cuda_model_limit_shared(unsigned char *end, size_t bytes)
{
  size_t padded = (bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;

  __asan_unpoison_memory_region(end - padded, bytes);
  __asan_poison_memory_region(end - padded + bytes, padded - bytes);
  return end - padded;
}
