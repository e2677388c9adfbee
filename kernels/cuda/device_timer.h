/* SPDX-License-Identifier: Apache-2.0 */
/* How long the device works: two marks in a stream, and the time between them by the device's own clock. */
#ifndef KERNELS_CUDA_DEVICE_TIMER_H
#define KERNELS_CUDA_DEVICE_TIMER_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device_timer;

err_t device_timer_open(struct device_timer **out);
void device_timer_close(struct device_timer **t);

/* Mark the beginning and the end: when the stream has done what it was asked for before. */
err_t device_timer_start(struct device_timer *t, struct device_stream *s);
err_t device_timer_stop(struct device_timer *t, struct device_stream *s);

/* Milliseconds between the newest marks; waits for the second one. Returns ERR_DEVICE, also when there are none. */
err_t device_timer_read(struct device_timer *t, double *ms);

#ifdef __cplusplus
}
#endif

#endif
