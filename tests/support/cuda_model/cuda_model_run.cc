/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels on the processor: every thread of a block is a fiber. Several blocks run at a time, and blocks, warps
 * and lanes take turns in random order. */
#include <atomic>
#include <map>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <vector>

#include "tests/support/cuda_model/cuda_model_control.h"
#include "tests/support/cuda_model/cuda_model_mma.h"
#include "tests/support/cuda_model/cuda_model_parts.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum {
  STACK_BYTES = 128 * 1024,
  WARP = 32,
  WARPGROUP = 4 * WARP,
  THREADS_MOST = 1024,
  FIBERS_MOST = 2048,
  BLOCKS_AT_A_TIME = 4,
  SHARED_MOST = 256 * 1024
};

enum fiber_state : unsigned char { READY, AT_BLOCK, AT_GROUP, AT_WARPGROUP, AT_WARP, DONE };

/* An asynchronous copy that its thread has not waited for. */
struct copy {
  void *to;
  const void *from;
  size_t n;
  unsigned group;
};

/* A product of a warpgroup that its thread has not waited for. */
struct product {
  float *d; /* [n][4]: not a number until then */
  unsigned n;
  uint32_t a[4];
  const uint16_t *b;
  bool adds;
  unsigned group;
};

struct fiber {
  void *stack_pointer;
  unsigned char *stack;
  bool has_begun; /* has called begin_kernel() */
  unsigned group; /* of the next asynchronous copy */
  std::vector<copy> copies;
  unsigned product_group; /* of the next product */
  std::vector<product> products;
  std::map<float *, std::vector<float>> sums; /* of those products */
};

struct warpgroup {
  unsigned n_arrived, parity;
  bool is_any[2];
};

struct warp {
  unsigned n_arrived, parity, step;
  uint32_t interval;
  unsigned char bytes[2][WARP][CUDA_MODEL_WARP_BYTES];
};

struct block {
  std::vector<fiber> fibers;
  fiber_state states[THREADS_MOST]; /* of the fibers */
  std::vector<warp> warps;
  warpgroup warpgroups[THREADS_MOST / WARPGROUP];
  unsigned n_at_group[THREADS_MOST / WARP]; /* by the group's first warp */
  unsigned group_threads;                   /* 0: no group_sync() yet */
  unsigned n_at_block, n_done;
  uint32_t interval, number;
  unsigned char *shared_end;
  struct cuda_model_thread identity; /* of its threads, but for the thread's number */
};

/* A host thread's running kernel. */
struct machine {
  block blocks[BLOCKS_AT_A_TIME];
  block *now;
  unsigned n_threads, current;
  void *scheduler_stack_pointer;
  const std::function<void()> *body;
  uint64_t dice;
  bool is_running;
};

__constinit thread_local struct cuda_model_thread cuda_model_now;
__constinit thread_local struct cuda_model_place cuda_model_place;
static __constinit thread_local machine *m; /* allocated by cuda_model_random() */

/* Frees the machine of a host thread that ends. */
static void free_stack(unsigned char *stack)
{
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack, STACK_BYTES); /* the addresses may be mapped again for something else */
#endif
  munmap(stack, STACK_BYTES);
}

struct machine_owner {
  bool is_used = false;
  ~machine_owner()
  {
    for (block &b : m->blocks)
      for (fiber &f : b.fibers)
        if (f.stack)
          free_stack(f.stack);
    delete m;
    m = NULL;
  }
};
static thread_local machine_owner owner;
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

/* The seed of this run: SLUICE_SEED or the clock. It is put into the environment, so the test's dice get the same. */
static uint64_t seed;

__attribute__((constructor(101))) static void find_seed() /* before anything can fail */
{
  char text[32];

  snprintf(text, sizeof text, "%llu", (unsigned long long)time(NULL));
  setenv("SLUICE_SEED", text, 0);
  seed = strtoull(getenv("SLUICE_SEED"), NULL, 0);
}

uint32_t cuda_model_random()
{
  static std::atomic<uint64_t> n_machines{ 0 };

  if (!m) {
    m = new machine();
    owner.is_used = true; /* so the thread constructs it, and destroys it in the end */
    m->dice = seed + n_machines++ * 0x9e3779b97f4a7c15u;
  }
  m->dice = m->dice * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(m->dice >> 32);
}

void cuda_model_stop(const char *what, ...)
{
  va_list arguments;

  fputs("cuda_model: ", stderr);
  va_start(arguments, what);
  vfprintf(stderr, what, arguments);
  va_end(arguments);
  if (m && m->is_running)
    fprintf(stderr, " (block %u %u %u, thread %u)", m->now->identity.block.x, m->now->identity.block.y,
            m->now->identity.block.z, m->current);
  fprintf(stderr, "; SLUICE_SEED=%llu\n", (unsigned long long)seed);
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
  cuda_model_switch(&m->now->fibers[m->current].stack_pointer, m->scheduler_stack_pointer);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, &scheduler_bottom, &scheduler_size);
#endif
}

static void fiber_main()
{
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(NULL, &scheduler_bottom, &scheduler_size);
#endif
  (*m->body)();
  if (!m->now->fibers[m->current].has_begun)
    cuda_model_stop("a kernel does not call begin_kernel()");
  if (!m->now->fibers[m->current].copies.empty())
    cuda_model_stop("a thread ends before the asynchronous copies that it started");
  if (!m->now->fibers[m->current].products.empty())
    cuda_model_stop("a thread ends before the products of its warpgroup");
  m->now->states[m->current] = DONE;
  m->now->n_done++;
  yield(true);
}

static void prepare_fiber(fiber *f)
{
  if (!f->stack) {
    void *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      cuda_model_stop("no memory for a stack");
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
  f->has_begun = false;
  f->group = 0;
  f->copies.clear();
  f->product_group = 0;
  f->products.clear();
  f->sums.clear();
}

/* Say who runs now, for kernels and for the watch. */
static void be(unsigned thread)
{
  m->current = thread;
  cuda_model_now.thread.x = thread;
  if (cuda_model_place.is_watched) {
    cuda_model_place.has_begun = m->now->fibers[thread].has_begun;
    cuda_model_place.block_interval = m->now->interval;
    cuda_model_place.interval = m->now->warps[thread / WARP].interval;
    cuda_model_place.warp = thread / WARP;
    cuda_model_place.step = m->now->warps[thread / WARP].step;
    cuda_model_place.lane = thread % WARP;
  }
}

static void resume(unsigned thread)
{
  be(thread);
#if defined(__SANITIZE_ADDRESS__)
  void *fake = NULL;
  __sanitizer_start_switch_fiber(&fake, m->now->fibers[thread].stack, STACK_BYTES);
#endif
  cuda_model_switch(&m->scheduler_stack_pointer, m->now->fibers[thread].stack_pointer);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

static void wait_in(fiber_state state)
{
  m->now->states[m->current] = state;
  yield(false);
}

/* A new interval of some of the block's warps begins: no access of theirs races with one of theirs of an earlier
 * interval. n_warps 0: of all warps. */
static uint32_t begin_interval(block *b, unsigned first, unsigned n_warps)
{
  unsigned end = n_warps ? first + n_warps : m->n_threads / WARP;
  uint32_t interval = cuda_model_place.is_watched ? cuda_model_watch_interval(b->number, first, n_warps) : 0;

  for (unsigned w = first; w < end; w++) {
    b->warps[w].step = 0;
    b->warps[w].interval = interval;
  }
  return interval;
}

void __syncthreads()
{
  block *b = m->now;

  if (++b->n_at_block < m->n_threads) {
    wait_in(AT_BLOCK);
    return;
  }
  b->n_at_block = 0;
  memset(b->states, READY, m->n_threads);
  b->interval = begin_interval(b, 0, 0);
  be(m->current);
}

/* A block whose threads are not whole groups of n, or some of which never come, is a deadlock. */
void cuda_model_group_sync(unsigned n)
{
  unsigned first = m->current / n * n;
  block *b = m->now;

  if (n % WARP || (b->group_threads && b->group_threads != n))
    cuda_model_stop("a block's groups must have whole warps, and all of them as many");
  b->group_threads = n;
  if (++b->n_at_group[first / WARP] < n) {
    wait_in(AT_GROUP);
    return;
  }
  b->n_at_group[first / WARP] = 0;
  memset(b->states + first, READY, n);
  begin_interval(b, first / WARP, n / WARP);
  be(m->current);
}

const unsigned char (*cuda_model_exchange(const void *mine, size_t n))[CUDA_MODEL_WARP_BYTES]
{
  unsigned first = m->current / WARP * WARP;
  block *b = m->now;
  warp *w = &b->warps[m->current / WARP];
  unsigned parity = w->parity;

  if (n > CUDA_MODEL_WARP_BYTES)
    cuda_model_stop("a warp operation has too many bytes");
  memcpy(w->bytes[parity][m->current % WARP], mine, n);
  if (++w->n_arrived < WARP) {
    wait_in(AT_WARP);
  } else {
    w->n_arrived = 0;
    w->parity = 1 - parity;
    memset(b->states + first, READY, WARP);
  }
  return w->bytes[parity];
}

/* Other warp operations exchange values, but only this one orders accesses to memory. */
void __syncwarp()
{
  warp *w = &m->now->warps[m->current / WARP];
  unsigned next = w->step + 1;

  cuda_model_exchange("", 1);
  w->step = next; /* every lane writes the same */
  be(m->current);
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

/* Asynchronous copies happen as late as they may: when their thread waits for them. Until then there are bytes that are
 * NaN in every format. */
void cuda_model_copy_async(void *shared, const void *global, size_t n)
{
  fiber *f = &m->now->fibers[m->current];

  if ((uintptr_t)shared % n || (uintptr_t)global % n)
    cuda_model_stop("an asynchronous copy from %p to %p: not multiples of %zu", global, shared, n);
  cuda_model_watch_access(shared, n, true);
  cuda_model_watch_unwrite(shared, n);
  memset(shared, 0xff, n);
  f->copies.push_back({ shared, global, n, f->group });
}

void cuda_model_copy_async_commit()
{
  m->now->fibers[m->current].group++;
}

void cuda_model_copy_async_wait(unsigned pending)
{
  fiber *f = &m->now->fibers[m->current];
  size_t kept = 0;

  for (const copy &c : f->copies) {
    if (c.group + pending >= f->group) {
      f->copies[kept++] = c;
      continue;
    }
    cuda_model_watch_access(c.from, c.n, false);
    cuda_model_watch_access(c.to, c.n, true);
    memcpy(c.to, c.from, c.n);
  }
  f->copies.resize(kept);
}

/* Wait for the warpgroup's other threads. A block that has no whole group there, or of which some warps never come, is
 * a deadlock. It orders no accesses to memory. */
bool cuda_model_warpgroup_any(bool is_true)
{
  unsigned first = m->current / WARPGROUP * WARPGROUP;
  block *b = m->now;
  warpgroup *g = &b->warpgroups[m->current / WARPGROUP];
  unsigned parity = g->parity;

  if (g->n_arrived == 0)
    g->is_any[parity] = false;
  g->is_any[parity] |= is_true;
  if (++g->n_arrived < WARPGROUP) {
    wait_in(AT_WARPGROUP);
  } else {
    g->n_arrived = 0;
    g->parity = 1 - parity;
    memset(b->states + first, READY, WARPGROUP);
  }
  return g->is_any[parity];
}

void cuda_model_warpgroup_begin()
{
  cuda_model_warpgroup_any(false);
}

/* Products happen as late as they may, like copies: so b must not change before the wait. */
void cuda_model_warpgroup_multiply(float *d, unsigned n, const uint32_t a[4], const uint16_t *b, bool adds)
{
  fiber *f = &m->now->fibers[m->current];

  if ((uintptr_t)b % 16)
    cuda_model_stop("a warpgroup's operand at %p: no multiple of 16", (const void *)b);
  if (f->sums.count(d) == 0)
    f->sums[d] = std::vector<float>(d, d + 4 * n);
  for (unsigned i = 0; i < 4 * n; i++)
    d[i] = NAN;
  f->products.push_back({ d, n, { a[0], a[1], a[2], a[3] }, b, adds, f->product_group });
}

void cuda_model_warpgroup_commit()
{
  m->now->fibers[m->current].product_group++;
}

static void run_product(const product &p, float *sums)
{
  enum { MATRIX_WORDS = 32 };
  static const float zeros[4] = {};

  for (unsigned i = 0; i < p.n; i++) {
    uint32_t b[2];
    for (unsigned k = 0; k < 2; k++) {
      const uint16_t *word = p.b + ((2 * i + k) * MATRIX_WORDS + m->current % WARP) * 2;
      cuda_model_watch_access(word, sizeof b[k], false);
      memcpy(&b[k], word, sizeof b[k]);
    }
    cuda_model_mma_f16(sums + 4 * i, p.a, b, p.adds ? sums + 4 * i : zeros);
  }
}

void cuda_model_warpgroup_wait(unsigned pending)
{
  fiber *f = &m->now->fibers[m->current];
  std::vector<product> left;

  for (const product &p : f->products) {
    if (p.group + pending >= f->product_group)
      left.push_back(p);
    else
      run_product(p, f->sums[p.d].data());
  }
  for (const product &p : f->products) {
    bool is_left = false;
    for (const product &other : left)
      is_left |= other.d == p.d;
    if (is_left || f->sums.count(p.d) == 0)
      continue;
    memcpy(p.d, f->sums[p.d].data(), 4 * p.n * sizeof *p.d);
    f->sums.erase(p.d);
  }
  f->products = left;
}

/* Numbers below n in random order: the i-th is (i * factor + offset) % n with factor coprime to n. */
struct shuffled {
  unsigned n, factor, offset;
  explicit shuffled(unsigned n_) : n(n_), factor(1), offset(0)
  {
    uint32_t bits = cuda_model_random();
    offset = bits % n;
    for (unsigned wish = (bits >> 8) % n + 1; wish > 1 && factor == 1; wish--)
      factor = is_coprime(wish, n) ? wish : 1;
  }
  unsigned operator[](unsigned i) const
  {
    return (i * factor + offset) % n;
  }
  static bool is_coprime(unsigned a, unsigned b)
  {
    while (b) {
      unsigned rest = a % b;
      a = b;
      b = rest;
    }
    return a == 1;
  }
};

/* Let a warp's lanes run until each waits for others; if the warp alone can go on then, do so up to n times. */
static bool run_warp(block *b, unsigned w, unsigned n)
{
  bool is_moving = false;

  for (unsigned i = 0; i < n; i++) {
    uint32_t bits = cuda_model_random();
    unsigned factor = bits | 1, offset = bits >> 8, flip = bits >> 16;
    bool has_moved = false;
    for (unsigned j = 0; j < WARP; j++) {
      unsigned thread = w * WARP + (((j * factor + offset) ^ flip) & (WARP - 1));
      if (b->states[thread] == READY) {
        resume(thread);
        has_moved = true;
      }
    }
    if (!has_moved)
      break;
    is_moving = true;
  }
  return is_moving;
}

/* Give a block's warps a turn each, of random length. */
static void run_block(block *b)
{
  unsigned n_warps = m->n_threads / WARP;
  shuffled order(n_warps);
  uint32_t bits = cuda_model_random();
  bool is_moving = false;

  m->now = b;
  cuda_model_now = b->identity;
  cuda_model_place.block = b->number;
  cuda_model_place.shared_end = b->shared_end;
  for (unsigned i = 0; i < n_warps; i++) {
    static const unsigned lengths[4] = { 1, 2, 8, 1000 };
    is_moving |= run_warp(b, order[i], lengths[(bits >> i % 16 * 2) & 3]);
  }
  if (!is_moving)
    cuda_model_stop("deadlock: threads wait for others that have ended or that wait for something else");
}

static void begin_block(block *b, dim3 index, dim3 grid, size_t shared_bytes)
{
  unsigned n_warps = m->n_threads / WARP;

  if (!b->shared_end)
    b->shared_end = cuda_model_allocate_shared(SHARED_MOST);
  if (b->fibers.size() < m->n_threads)
    b->fibers.resize(m->n_threads);
  if (b->warps.size() < n_warps)
    b->warps.resize(n_warps);
  b->n_at_block = b->n_done = 0;
  for (unsigned i = 0; i < m->n_threads; i++)
    prepare_fiber(&b->fibers[i]);
  memset(b->states, READY, m->n_threads);
  for (unsigned w = 0; w < n_warps; w++)
    b->warps[w].n_arrived = b->warps[w].parity = 0;
  memset(b->warpgroups, 0, sizeof b->warpgroups);
  memset(b->n_at_group, 0, sizeof b->n_at_group);
  b->group_threads = 0;
  b->identity.block = index;
  b->identity.block_size = dim3(m->n_threads);
  b->identity.grid = grid;
  b->identity.shared = cuda_model_limit_shared(b->shared_end, shared_bytes);
  memset(b->identity.shared, CUDA_MODEL_GARBAGE, shared_bytes);
  b->number = (index.z * grid.y + index.y) * grid.x + index.x;
  b->interval = begin_interval(b, 0, 0);
}

void cuda_model_begin_kernel()
{
  m->now->fibers[m->current].has_begun = true;
  cuda_model_place.has_begun = true;
}

void cuda_model_run(dim3 grid, unsigned n_threads, size_t shared_bytes, const std::function<void()> &body)
{
  unsigned n_blocks = grid.x * grid.y * grid.z, begun = 0, n_live = 0;
  uint32_t bits = cuda_model_random();

  if (n_threads % WARP || n_threads == 0 || n_threads > THREADS_MOST)
    cuda_model_stop("a block must have whole warps, at most 32");
  unsigned most = FIBERS_MOST / n_threads < BLOCKS_AT_A_TIME ? FIBERS_MOST / n_threads : (unsigned)BLOCKS_AT_A_TIME;
  most = 1 + bits % most;
  shuffled order(n_blocks);
  block *live[BLOCKS_AT_A_TIME];

  m->n_threads = n_threads;
  m->body = &body;
  if (cuda_model_is_watching)
    cuda_model_watch_kernel();
  cuda_model_place.is_watched = cuda_model_is_watching;
  m->is_running = true;
  for (unsigned i = 0; i < BLOCKS_AT_A_TIME; i++)
    live[i] = &m->blocks[i];
  while (begun < n_blocks || n_live > 0) {
    while (begun < n_blocks && n_live < most) {
      unsigned i = order[begun++];
      begin_block(live[n_live++], dim3(i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y), grid, shared_bytes);
    }
    unsigned i = n_live == 1 ? 0 : cuda_model_random() % n_live;
    run_block(live[i]);
    if (live[i]->n_done == n_threads) {
      block *ended = live[i];
      live[i] = live[--n_live];
      live[n_live] = ended;
    }
  }
  m->is_running = false;
  cuda_model_place.is_watched = false;
}
