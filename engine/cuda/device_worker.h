/* What one search worker has of the device: a stream, scratch memory there, and pinned memory here.
 *
 * All of it is reserved at open; nothing is allocated while queries are answered. Thread: the worker.
 */
#ifndef ENGINE_CUDA_DEVICE_WORKER_H
#define ENGINE_CUDA_DEVICE_WORKER_H

#include "kernels/device.h"

enum { DEVICE_PINNED_BYTES = 32 << 20 };

struct device_worker {
  struct device_stream *stream;
  uint8_t *scratch;
  size_t scratch_bytes, scratch_used;
  uint8_t *pinned;
  size_t pinned_bytes, pinned_used;
  unsigned n_processors; /* of the device: blocks that stay for a whole scan */
};

/* capacity  slots of an arena */
err_t device_worker_open(size_t capacity, struct device_worker **out);
void device_worker_close(struct device_worker **w);

/* Forget all arrays. Nothing that uses them may be under way. */
void device_worker_reset(struct device_worker *w);

/* Undefined memory of the device, or pinned memory of the host, until reset. Returns ERR_DEVICE when there is no more:
 * who asks divides his work so that there is. */
err_t device_worker_array(struct device_worker *w, size_t count, size_t size, void *out);
err_t device_worker_pinned(struct device_worker *w, size_t count, size_t size, void *out);

/* A copy on the device of memory of the host, by way of pinned memory: `from` may go at once. */
err_t device_worker_upload(struct device_worker *w, const void *from, size_t count, size_t size, void *out);

#endif
