/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of this machine, if there is one: its memory and its streams.
 *
 * cuda/device.cu implements this; programs reach it through engine/backend/cuda_module.h, because not every machine has
 * it. Only device_is_in_machine() is in every program. A stream works asynchronously and in order; device_wait() waits
 * until it is idle. A device error is ERR_DEVICE; the device cannot be used after it. The host must not dereference
 * device pointers.
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

/* Find the first device. Returns ERR_DEVICE with the reason when it cannot be used: no device, no driver, a driver that
 * is too old, or a device below compute capability 8.0. Call it before there are other threads; later calls may come
 * from any thread. Blocks: while the driver starts. */
err_t device_find(struct device *out);

/* Does this machine have an NVIDIA card, whether or not this process can use it?
 *
 * pci_devices  the folder that describes the PCI devices; NULL: the system's, /sys/bus/pci/devices
 */
bool device_is_in_machine(const char *pci_devices);

/* Bytes of device memory that are free. */
err_t device_free_bytes(size_t *out);

/* Allocate device memory, aligned to 256 bytes and uninitialised. device_free() frees it; pass the address of the
 * pointer, which becomes NULL. Returns ERR_DEVICE with the number of bytes. Blocks: yes; never call it on the query
 * path. */
err_t device_alloc(size_t count, size_t size, void *out);
void device_free(void *memory);

/* The same for pinned host memory, which the device can read and write at full speed. */
err_t device_alloc_host(size_t count, size_t size, void *out);
void device_free_host(void *memory);

struct device_stream;

err_t device_stream_open(struct device_stream **out);
void device_stream_close(struct device_stream **s);

/* Start a copy to the device, from it, or within it. Host memory must come from device_alloc_host() and must not change
 * until device_wait() has returned. */
err_t device_copy_in(struct device_stream *s, void *to, const void *from, size_t bytes);
err_t device_copy_out(struct device_stream *s, void *to, const void *from, size_t bytes);
err_t device_copy(struct device_stream *s, void *to, const void *from, size_t bytes);
err_t device_fill(struct device_stream *s, void *memory, int byte, size_t bytes);

/* Wait until the stream is idle. Reports errors of everything that ran in it. A short wait keeps the core busy, a
 * longer one sleeps. */
err_t device_wait(struct device_stream *s);

#ifdef __cplusplus
}
#endif

#endif
