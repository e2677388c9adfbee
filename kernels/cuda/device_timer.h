/* SPDX-License-Identifier: Apache-2.0 */
/* A timer on the device's own clock: the time between two marks in a stream. For benchmarks. */
#ifndef KERNELS_CUDA_DEVICE_TIMER_H
#define KERNELS_CUDA_DEVICE_TIMER_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device_timer;

err_t device_timer_open(struct device_timer **out);
void device_timer_close(struct device_timer **t);

/* Put the start or the stop mark into the stream. The device takes the time when it reaches the mark. */
err_t device_timer_start(struct device_timer *t, struct device_stream *s);
err_t device_timer_stop(struct device_timer *t, struct device_stream *s);

/* Wait for the newest stop mark and return the milliseconds since the start mark. Returns ERR_DEVICE on failure, and
 * when no marks were set. */
err_t device_timer_read(struct device_timer *t, double *ms);

#ifdef __cplusplus
}
#endif

#endif
