/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of this GPU, measured by short loops: a search's share of them says what is left. On the model of a device the
 * numbers are those of the model. Thread: main. */
#ifndef TESTS_BENCH_GPU_CEILINGS_H
#define TESTS_BENCH_GPU_CEILINGS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream, a timer, and two arrays of the device, of random bytes. */
struct gpu_ceilings;

/* bytes  of each array, a multiple of 256; several times the L2 cache for a copy that goes to memory
 * loops  of the kernels: thousands on a device */
err_t gpu_ceilings_open(size_t bytes, size_t loops, struct gpu_ceilings **out);
void gpu_ceilings_close(struct gpu_ceilings **c);

/* Copy one array over the other and wait: nothing else is in the caches then. */
err_t gpu_ceilings_flush(struct gpu_ceilings *c);

/* Best of a few runs. Bytes a nanosecond of a copy, read and written ones together. */
err_t gpu_ceilings_copy_rate(struct gpu_ceilings *c, double *out);

/* Floating-point operations a nanosecond of f16 products by mma.sync, summed in f32, from registers. */
err_t gpu_ceilings_mma_rate(struct gpu_ceilings *c, double *out);

/* Words a nanosecond out of shared memory, without bank conflicts. */
err_t gpu_ceilings_shared_rate(struct gpu_ceilings *c, double *out);

#ifdef __cplusplus
}
#endif

#endif
