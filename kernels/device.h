/* The accelerator of this machine, if there is one. device_cuda.cu where the build has CUDA, device_none.c elsewhere.
 */
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device {
  char name[256];
  size_t memory_bytes;
  int compute_capability; /* 90 for 9.0 */
};

/* Find the first device. Returns false when there is none, or no driver for it. Thread: any. Blocks: while the driver
 * starts. */
bool device_find(struct device *out);

#ifdef __cplusplus
}
#endif

#endif
