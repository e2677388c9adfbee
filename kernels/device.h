/* SPDX-License-Identifier: Apache-2.0 */
/* The accelerator of this machine, if there is one: its memory, and the streams in which it works.
 *
 * cuda/device.cu where the build has CUDA (or, for tests, its model), device_none.c elsewhere. What a stream is asked
 * for happens later, in order; device_wait() waits for it. An error of the device is ERR_DEVICE, and there is no going
 * on with the device after it. Memory of the device is known by its address there, which the host must not follow.
 */
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/err.h"

struct device {
  char name[256];
  size_t memory_bytes;
  int compute_capability; /* 90 for 9.0 */
  int n_processors;       /* streaming multiprocessors */
};

/* Find the first device. Returns false when there is none of compute capability 8.0 or above, or no driver for it. Thread: any. Blocks: while the driver
 * starts. */
bool device_find(struct device *out);

/* Bytes of the device's memory that nobody has. */
err_t device_free_bytes(size_t *out);

/* Memory of the device, aligned to 256; what is in it is undefined. Freed with device_free(), which takes the address of
 * the pointer. Returns ERR_DEVICE with the bytes. Blocks: yes; not for the query path. */
err_t device_alloc(size_t count, size_t size, void *out);
void device_free(void *memory);

/* Memory of the host that the device can read and write at full speed, likewise. */
err_t device_alloc_host(size_t count, size_t size, void *out);
void device_free_host(void *memory);

struct device_stream;

err_t device_stream_open(struct device_stream **out);
void device_stream_close(struct device_stream **s);

/* To the device, from it, and within it. Memory of the host must come from device_alloc_host(), and stay as it is until
 * the stream was waited for. */
err_t device_copy_in(struct device_stream *s, void *to, const void *from, size_t bytes);
err_t device_copy_out(struct device_stream *s, void *to, const void *from, size_t bytes);
err_t device_copy(struct device_stream *s, void *to, const void *from, size_t bytes);
err_t device_fill(struct device_stream *s, void *memory, int byte, size_t bytes);

/* Wait until the stream has done what it was asked for. Errors of all of it are found here. */
err_t device_wait(struct device_stream *s);

#ifdef __cplusplus
}
#endif

#endif
