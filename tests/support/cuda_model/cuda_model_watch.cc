/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the memory accesses of kernels: finds races within a block and between blocks, and reads of what was never
 * written. GCC's -fsanitize=thread makes the kernels call the functions at the end of this file before each access;
 * nothing else of the thread sanitizer is used.
 *
 * Two accesses to a byte race if a kernel makes both, at least one writes, not both are atomic, and nothing orders
 * them. Only this orders them: a thread's program, __syncthreads() for the threads of a block, group_sync() for those of
 * a group of warps, __syncwarp() for those of a warp, and the end of a kernel. So a place (block, interval, warp, step,
 * lane) tells all that a vector clock would.
 */
#include <atomic>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <vector>

#include "tests/support/cuda_model/cuda_model_parts.h"

/* Who accessed a byte. MANY in a field stands for several that differ there. */
struct who {
  uint64_t machine : 8, interval : 32, warp : 6, step : 10, lane : 6, is_atomic : 1, is_written : 1;
};
static_assert(sizeof(who) == 8);
enum { MANY_WARPS = 63, MANY_LANES = 63, MANY_BLOCKS = UINT32_MAX };

/* The last write of a byte, and the reads since some write before it. */
struct shadow {
  who write, read;
};

bool cuda_model_is_watching;
static shadow *shadows; /* of each byte of device memory */
static std::atomic<unsigned> n_machines{ 0 };
static thread_local unsigned machine;
static thread_local uint32_t n_intervals; /* of this host thread, ever; the first of a kernel stands for many blocks */
static thread_local uint32_t kernel_interval;

/* Where an interval is: of a whole block, or of a group of its warps. */
struct interval {
  uint32_t block;
  unsigned first_warp, n_warps; /* n_warps 0: the block */
};
static thread_local std::vector<interval> intervals; /* of the kernel */

void cuda_model_watch_start()
{
#if defined(__SANITIZE_ADDRESS__)
  cuda_model_stop("the address sanitizer's build cannot watch");
#endif
  void *memory = mmap(NULL, CUDA_MODEL_SPACE * sizeof(shadow), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    cuda_model_stop("no addresses for the shadow of device memory");
  shadows = (shadow *)memory;
  cuda_model_is_watching = true;
}

void cuda_model_watch_kernel()
{
  if (machine == 0)
    machine = ++n_machines & 0xff;
  intervals.clear();
  kernel_interval = cuda_model_watch_interval(MANY_BLOCKS, 0, 0);
}

uint32_t cuda_model_watch_interval(uint32_t block, unsigned first_warp, unsigned n_warps)
{
  intervals.push_back({ block, first_warp, n_warps });
  return ++n_intervals;
}

static shadow *shadow_of(const void *p)
{
  return shadows + ((const unsigned char *)p - cuda_model_space);
}

static bool is_of_this_kernel(who w)
{
  return w.machine == machine && w.interval >= kernel_interval;
}

static const interval &interval_of(who w)
{
  return intervals[w.interval - kernel_interval];
}

static uint32_t block_of(who w)
{
  return interval_of(w).block;
}

static bool has_warp(const interval &group, unsigned warp)
{
  return warp - group.first_warp < group.n_warps;
}

/* Has a barrier of the block, or of a group of warps that both are in, come between two accesses in other intervals?
 * Of several warps it is only known that they are in the group whose interval it was. So a write after group_sync() is
 * wrongly called a race with reads of several warps between __syncthreads() and the first group_sync(). */
static bool is_barrier_between(who before, who now)
{
  if (before.warp == now.warp || before.interval < cuda_model_place.block_interval)
    return true;
  if (before.interval > now.interval)
    return false;
  const interval &then = interval_of(before), &last = interval_of(now); /* whose barrier was the last one of `now` */
  if (before.warp != MANY_WARPS)
    return has_warp(last, before.warp);
  return then.n_warps > 0 && has_warp(last, then.first_warp) && has_warp(last, then.first_warp + then.n_warps - 1);
}

static bool is_shared(const void *p)
{
  return p >= cuda_model_now.shared && p < cuda_model_place.shared_end;
}

/* Is nothing known that orders the access `before` and the one now? */
static bool is_unordered(who before, who now)
{
  if (!is_of_this_kernel(before))
    return false;
  if (block_of(before) != block_of(now))
    return true;
  if (before.interval != now.interval)
    return !is_barrier_between(before, now);
  if (before.warp != now.warp)
    return true;
  return before.step == now.step && before.lane != now.lane;
}

/* Both accesses in one, as far as later ones care. */
static who joined(who before, who now)
{
  if (!is_of_this_kernel(before))
    return now;
  if (block_of(before) != block_of(now)) {
    now.interval = kernel_interval;
    return now;
  }
  if (before.interval != now.interval) {
    if (!is_barrier_between(before, now)) { /* only the block's next barrier comes after both */
      now.interval = cuda_model_place.block_interval;
      now.warp = MANY_WARPS;
    }
    return now;
  }
  if (before.warp != now.warp)
    now.warp = MANY_WARPS;
  else if (before.step == now.step && before.lane != now.lane)
    now.lane = MANY_LANES;
  return now;
}

/* Name the source line of an address in this program. */
static void print_line(const void *at)
{
  Dl_info info;
  char command[512];

  if (!dladdr(at, &info) || !info.dli_fname)
    return;
  snprintf(command, sizeof command, "addr2line -Cspfie '%s' %#lx >&2", info.dli_fname,
           (unsigned long)((const char *)at - (const char *)info.dli_fbase - 1));
  fflush(stderr);
  if (system(command) != 0)
    fprintf(stderr, "%s\n", command);
}

[[noreturn]] static void report(const char *what, const void *p, who before, const void *from)
{
  fprintf(stderr, "cuda_model: %s at %p, by:\n", what, p);
  print_line(from);
  if (before.machine && is_of_this_kernel(before)) {
    fprintf(stderr, "the other access: ");
    if (block_of(before) == MANY_BLOCKS)
      fprintf(stderr, "of several blocks");
    else
      fprintf(stderr, "block %u", block_of(before));
    if (before.warp == MANY_WARPS)
      fprintf(stderr, ", several warps\n");
    else if (before.lane == MANY_LANES)
      fprintf(stderr, ", warp %u, several lanes\n", (unsigned)before.warp);
    else
      fprintf(stderr, ", thread %u\n", (unsigned)(before.warp * 32 + before.lane));
  }
  cuda_model_stop("%s", what);
}

enum access { READ, WRITE, ATOMIC };

/* Forget what earlier blocks, whose shared memory was at the same place, did there. */
static void forget_other_blocks(shadow *s, uint32_t block)
{
  if (!is_of_this_kernel(s->write) || block_of(s->write) != block)
    s->write = {};
  if (!is_of_this_kernel(s->read) || block_of(s->read) != block)
    s->read = {};
}

/* Check an access to one byte and note it. */
static void watch_byte(shadow *s, const unsigned char *byte, who now, access kind, const void *from)
{
  if (is_shared(byte))
    forget_other_blocks(s, cuda_model_place.block);
  if (kind != WRITE && !s->write.is_written)
    report("a kernel reads memory that nobody wrote", byte, {}, from);
  if (!(kind == ATOMIC && s->write.is_atomic) && is_unordered(s->write, now))
    report(kind == READ ? "a race: a read, and a write before it" : "a race: two writes", byte, s->write, from);
  if (kind == READ) {
    s->read = joined(s->read, now);
    return;
  }
  if (is_unordered(s->read, now))
    report("a race: a write, and a read before it", byte, s->read, from);
  if (kind == WRITE)
    s->write = now;
  else if (s->write.is_atomic)
    s->write = joined(s->write, now);
  else if (!is_of_this_kernel(s->write) || s->write.interval != now.interval || s->write.step != now.step)
    s->write = now;
  /* else a thread's own plain write stays: an atomic access of another thread would race with it */
}

static void watch(const void *p, size_t n, access kind, const void *from)
{
  const struct cuda_model_place &here = cuda_model_place;
  shadow *s = shadow_of(p);
  who now = {};

  if (!here.has_begun && !is_shared(p))
    cuda_model_stop("device memory is accessed before begin_kernel()");
  now.machine = machine & 0xff;
  now.interval = here.interval;
  now.warp = here.warp & 63;
  now.step = here.step & 1023;
  now.lane = here.lane & 63;
  now.is_atomic = kind == ATOMIC;
  now.is_written = 1;
  for (size_t done = 0; done < n;) { /* bytes with equal shadows, as most are, need only one check */
    shadow before = s[done];
    watch_byte(&s[done], (const unsigned char *)p + done, now, kind, from);
    shadow after = s[done];
    for (done++; done < n && memcmp(&s[done], &before, sizeof before) == 0; done++)
      s[done] = after;
  }
}

void cuda_model_watch_access(const void *p, size_t n, bool is_write)
{
  if (cuda_model_place.is_watched && cuda_model_is_device(p))
    watch(p, n, is_write ? WRITE : READ, __builtin_return_address(0));
}

void cuda_model_atomic_read(void *to, const void *from, size_t n)
{
  if (cuda_model_place.is_watched && cuda_model_is_device(from))
    watch(from, n, ATOMIC, __builtin_return_address(0));
  memcpy(to, from, n);
}

void cuda_model_atomic_write(void *to, const void *from, size_t n)
{
  memcpy(to, from, n);
}

void cuda_model_watch_unwrite(const void *p, size_t n)
{
  if (cuda_model_place.is_watched)
    for (size_t i = 0; i < n; i++)
      shadow_of(p)[i].write.is_written = 0;
}

static who of_the_host(bool is_written)
{
  who w = {};

  w.is_written = is_written;
  return w;
}

void cuda_model_watch_fill(const void *to, size_t n)
{
  if (cuda_model_is_watching && cuda_model_is_device(to))
    for (size_t i = 0; i < n; i++)
      shadow_of(to)[i].write = of_the_host(true);
}

void cuda_model_watch_copy(const void *to, const void *from, size_t n)
{
  if (!cuda_model_is_watching)
    return;
  if (!cuda_model_is_device(from)) {
    cuda_model_watch_fill(to, n);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    bool is_written = shadow_of(from)[i].write.is_written;
    if (cuda_model_is_device(to))
      shadow_of(to)[i].write = of_the_host(is_written);
    else if (!is_written)
      cuda_model_stop("a copy to the host has byte %zu of %zu, which nobody wrote", i, n);
  }
}

void cuda_model_watch_forget(const void *p, size_t n)
{
  if (cuda_model_is_watching)
    madvise(shadow_of(p), n * sizeof(shadow), MADV_DONTNEED);
}

/* What -fsanitize=thread calls. The names are the compiler's. With the address sanitizer kernels have no such calls. */
#if !defined(__SANITIZE_ADDRESS__)
#define ACCESS(name, n, kind)                                   \
  extern "C" void __tsan_##name(const void *p)                  \
  {                                                             \
    if (cuda_model_place.is_watched && cuda_model_is_device(p)) \
      watch(p, n, kind, __builtin_return_address(0));           \
  }
ACCESS(read1, 1, READ)
ACCESS(read2, 2, READ)
ACCESS(read4, 4, READ)
ACCESS(read8, 8, READ)
ACCESS(read16, 16, READ)
ACCESS(write1, 1, WRITE)
ACCESS(write2, 2, WRITE)
ACCESS(write4, 4, WRITE)
ACCESS(write8, 8, WRITE)
ACCESS(write16, 16, WRITE)

extern "C" void __tsan_read_range(const void *p, size_t n)
{
  if (cuda_model_place.is_watched && cuda_model_is_device(p))
    watch(p, n, READ, __builtin_return_address(0));
}

extern "C" void __tsan_write_range(const void *p, size_t n)
{
  if (cuda_model_place.is_watched && cuda_model_is_device(p))
    watch(p, n, WRITE, __builtin_return_address(0));
}

extern "C" void __tsan_init()
{
}

extern "C" void __tsan_func_entry(const void *)
{
}

extern "C" void __tsan_func_exit()
{
}

extern "C" void __tsan_vptr_update(const void *, const void *)
{
}

extern "C" void __tsan_vptr_read(const void *)
{
}
#endif
