/* SPDX-License-Identifier: Apache-2.0 */
/* What one search worker has of the device: a stream, scratch memory there, and arrays that are on both sides: inputs,
 * which go there, and outputs, which come back, each all at once.
 *
 * All of it is reserved at open; nothing is allocated while queries are answered. Thread: the worker.
 */
#ifndef ENGINE_CUDA_DEVICE_WORKER_H
#define ENGINE_CUDA_DEVICE_WORKER_H

#include "kernels/device.h"

enum { DEVICE_MIRROR_BYTES = 16 << 20 };

/* Memory of the device, and as much pinned memory of the host. */
struct device_mirror {
  uint8_t *device, *host;
  size_t used;
};

struct device_worker {
  struct device_stream *stream;
  uint8_t *scratch;
  size_t scratch_bytes, scratch_used;
  struct device_mirror inputs, outputs; /* of DEVICE_MIRROR_BYTES */
  size_t inputs_sent;
  unsigned n_processors; /* of the device: blocks that stay for a whole scan */
};

/* capacity  slots of an arena */
err_t device_worker_open(size_t capacity, struct device_worker **out);
void device_worker_close(struct device_worker **w);

/* Forget all arrays. Nothing that uses them may be under way. */
void device_worker_reset(struct device_worker *w);

/* Undefined memory of the device, until reset. It and those below return ERR_DEVICE when there is no more: who asks
 * divides his work so that there is. */
err_t device_worker_array(struct device_worker *w, size_t count, size_t size, void *out);

/* An input: what the host writes to `*host` now, the device has in `*device` once it was sent. */
err_t device_worker_input(struct device_worker *w, size_t count, size_t size, void *host, void *device);

/* The same of memory that there is: `from` may go at once. */
err_t device_worker_upload(struct device_worker *w, const void *from, size_t count, size_t size, void *device);

/* Have the stream bring all inputs to the device that were not sent before, in one copy; who launches what reads them
 * sends them first. */
err_t device_worker_send(struct device_worker *w);

/* An output: what the device leaves in `*device`, the host has in `*host` once it was received. What nothing was
 * written to comes back too, undefined. */
err_t device_worker_output(struct device_worker *w, size_t count, size_t size, void *device, void *host);

/* Bring all outputs back, in one copy, and wait for the stream. */
err_t device_worker_receive(struct device_worker *w);

#endif
