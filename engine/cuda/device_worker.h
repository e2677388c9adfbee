/* SPDX-License-Identifier: Apache-2.0 */
/* A search worker's share of the device: a stream, scratch memory, mirrored arrays for inputs and outputs, and the
 * words of filters. All inputs but words go to the device in one copy. All outputs come back in one,
 * but for those that kernels write to the host themselves.
 *
 * Everything is allocated at open, nothing while queries are answered. Thread: the worker.
 */
#ifndef ENGINE_CUDA_DEVICE_WORKER_H
#define ENGINE_CUDA_DEVICE_WORKER_H

#include "engine/cuda/device_words.h"
#include "kernels/cuda/device_timer.h"
#include "kernels/device.h"

enum { DEVICE_MIRROR_BYTES = 16 << 20 };

/* A block of device memory and a block of pinned host memory of the same size. */
struct device_mirror {
  uint8_t *device, *host;
  size_t used;
};

struct device_worker {
  struct device_stream *stream;
  uint8_t *scratch;
  size_t scratch_bytes, scratch_used;
  struct device_mirror inputs, outputs; /* DEVICE_MIRROR_BYTES each */
  size_t inputs_sent;                   /* bytes of inputs already sent */
  size_t direct;                        /* bytes at the end of outputs.host that kernels write themselves */
  unsigned n_processors;                /* multiprocessors of the device; the grids of scans depend on it */
  struct device_words words;
  struct device_timer *timer; /* measures each search, from its first operation to its last; NULL: none */
  bool is_timed;              /* the timer has started */
};

/* The device memory of a worker. capacity: slots of an arena. */
size_t device_worker_bytes(size_t capacity);

/* Open or close a worker. capacity: slots of an arena. Returns ERR_DEVICE or ERR_MEMORY on failure. */
err_t device_worker_open(size_t capacity, struct device_worker **out);
void device_worker_close(struct device_worker **w);

/* Free all arrays of the worker. The stream must be idle. */
void device_worker_reset(struct device_worker *w);

/* Allocate uninitialised device memory, valid until reset. This and the functions below return ERR_DEVICE when the
 * worker's memory is used up; the caller splits its work so that it fits. */
err_t device_worker_array(struct device_worker *w, size_t count, size_t size, void *out);

/* Allocate an input. The host writes to `*host`; the device reads the same from `*device` after device_worker_send().
 */
err_t device_worker_input(struct device_worker *w, size_t count, size_t size, void *host, void *device);

/* Allocate an input and fill it with a copy of `from`. */
err_t device_worker_upload(struct device_worker *w, const void *from, size_t count, size_t size, void *device);

/* Start a copy of words of n_slots slots, if they are not on the device yet: see device_words_send(). */
err_t device_worker_words(struct device_worker *w, const uint64_t *words, size_t n_slots, uint64_t id,
                          const uint64_t **out);

/* Start one copy of all inputs that have not been sent yet. Call it before you launch a kernel that reads them. */
err_t device_worker_send(struct device_worker *w);

/* Allocate an output. The device writes to `*device`; the host reads the same from `*host` after
 * device_worker_receive(). Parts that the device has not written are undefined. */
err_t device_worker_output(struct device_worker *w, size_t count, size_t size, void *device, void *host);

/* Allocate an output that is not copied: a kernel writes it to the host's memory. The host may read it after
 * device_worker_receive(). For what a search's last kernel writes once, usually a few KiB: a copy would take several
 * microseconds more. */
err_t device_worker_direct_output(struct device_worker *w, size_t count, size_t size, void *out);

/* Copy all other outputs back, in one copy if there are any, and wait for the stream. */
err_t device_worker_receive(struct device_worker *w);

/* Wait for the stream after other copies. */
err_t device_worker_wait(struct device_worker *w);

#endif
