/* SPDX-License-Identifier: Apache-2.0 */
/* Peak rates of this GPU, measured with short loops. A search's share of the peak shows how much faster it could be. On
 * the simulated device, the numbers are those of the simulation. Thread: main. */
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

/* Empty the caches: copy one array over the other, then read one, and wait. Without the read, the caches would be full
 * of what the copy has written, and whatever comes next would wait until that is in memory. */
err_t gpu_ceilings_flush(struct gpu_ceilings *c);

/* Measure a copy, best of a few runs: bytes read and written per nanosecond. */
err_t gpu_ceilings_copy_rate(struct gpu_ceilings *c, double *out);

/* Measure a read, best of a few runs: bytes per nanosecond. */
err_t gpu_ceilings_read_rate(struct gpu_ceilings *c, double *out);

/* Measure f16 products with mma.sync from registers, summed in f32: floating-point operations per nanosecond. */
err_t gpu_ceilings_mma_rate(struct gpu_ceilings *c, double *out);

/* Measure reads from shared memory without bank conflicts: words per nanosecond. */
err_t gpu_ceilings_shared_rate(struct gpu_ceilings *c, double *out);

/* Measure the special functions tanh and exp2, in f32: results per nanosecond. */
err_t gpu_ceilings_tanh_rate(struct gpu_ceilings *c, double *out);
err_t gpu_ceilings_exp2_rate(struct gpu_ceilings *c, double *out);

/* Begin or end what a profiler looks at, if it was told to look at nothing else (ncu --profile-from-start off). */
err_t gpu_ceilings_profile(bool is_on);

#ifdef __cplusplus
}
#endif

#endif
