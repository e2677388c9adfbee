/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the model of a device share: its memory, its modes, and how a kernel is run and watched. */
#ifndef CUDA_MODEL_PARTS_H
#define CUDA_MODEL_PARTS_H

#include "tests/support/cuda_model/cuda_model.h"

enum { CUDA_MODEL_GARBAGE = 0xcb };

/* Print a message, where in which kernel the model is, and the seed; then abort. */
[[noreturn]] void cuda_model_stop(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* Random numbers of the running host thread. All of them follow from SLUICE_SEED. */
uint32_t cuda_model_random();

/* Run a kernel to its end. */
void cuda_model_run(dim3 grid, unsigned n_threads, size_t shared_bytes, const std::function<void()> &body);

/* Device memory (cuda_model_memory.cc). All of it, and the shared memory of blocks, lies in one range of addresses:
 * CUDA_MODEL_SPACE bytes from cuda_model_space on. No address is given twice, so memory that was freed faults. */
extern unsigned char *cuda_model_space;
constexpr size_t CUDA_MODEL_SPACE = (size_t)1 << 40;

static inline bool cuda_model_is_device(const void *p)
{
  return cuda_model_space && (size_t)((const unsigned char *)p - cuda_model_space) < CUDA_MODEL_SPACE;
}

/* Allocate device memory, which starts at a multiple of 256, has an unmapped page behind it, and is full of garbage.
 * NULL if there is none. */
void *cuda_model_allocate(size_t bytes);
size_t cuda_model_release(void *memory); /* returns its size */

/* Between these two calls the host thread works as the device. Outside of them device memory is protected. */
void cuda_model_enter();
void cuda_model_leave();

/* Memory for the shared memory of blocks, which the host thread keeps; returns its end, behind which nothing is mapped.
 * cuda_model_limit_shared() returns where a block's own begins if it has this many bytes. */
unsigned char *cuda_model_allocate_shared(size_t most);
unsigned char *cuda_model_limit_shared(unsigned char *end, size_t bytes);

/* Who accesses memory now, for the watch. An interval is the part of a block's run between two __syncthreads(), or of a
 * group of its warps between two group_sync(); its number is unique in a host thread, and rises. A step is the part of
 * a warp's interval between two __syncwarp(). */
struct cuda_model_place {
  bool is_watched; /* a kernel runs, and the watch is on */
  bool has_begun;  /* the thread has called begin_kernel() */
  uint32_t block, block_interval, interval, step, warp, lane; /* block_interval: the last one of the whole block */
  const unsigned char *shared_end;
};
extern __constinit thread_local struct cuda_model_place cuda_model_place;

/* The watch (cuda_model_watch.cc): one shadow of each byte of device and shared memory. */
extern bool cuda_model_is_watching;
void cuda_model_watch_start();                      /* before the first kernel */
void cuda_model_watch_kernel();                     /* a kernel begins in this host thread */
/* The next interval of a block begins, or of n_warps of its warps. n_warps 0: of all. */
uint32_t cuda_model_watch_interval(uint32_t block, unsigned first_warp, unsigned n_warps);
void cuda_model_watch_access(const void *p, size_t n, bool is_write);
void cuda_model_watch_unwrite(const void *p, size_t n); /* to read it is an error until the next write */
void cuda_model_watch_copy(const void *to, const void *from, size_t n); /* outside kernels; either may be the host's */
void cuda_model_watch_fill(const void *to, size_t n);
void cuda_model_watch_forget(const void *p, size_t n); /* memory is given back */

#endif
