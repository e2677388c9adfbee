/* SPDX-License-Identifier: Apache-2.0 */
/* device_timer.h by a pair of CUDA events. */
#include "kernels/cuda/device_timer.h"

#include <stdlib.h>

#include "kernels/cuda/launch.cuh"

struct device_timer {
  cudaEvent_t start, stop;
};

void device_timer_close(struct device_timer **t)
{
  if (*t && (*t)->start)
    cudaEventDestroy((*t)->start);
  if (*t && (*t)->stop)
    cudaEventDestroy((*t)->stop);
  free(*t);
  *t = NULL;
}

err_code_t device_timer_open(struct device_timer **out)
{
  struct device_timer *t = static_cast<struct device_timer *>(calloc(1, sizeof *t));

  if (!t)
    FAIL(ERR_MEMORY, "no memory for a timer");
  cudaError_t error = cudaEventCreate(&t->start);
  if (error == cudaSuccess)
    error = cudaEventCreate(&t->stop);
  if (error != cudaSuccess) {
    device_timer_close(&t);
    return cuda_failure(error, "cannot open a timer");
  }
  *out = t;
  return ERR_OK;
}

static err_code_t mark(cudaEvent_t event, struct device_stream *s)
{
  cudaError_t error = cudaEventRecord(event, cuda_stream(s));

  return error == cudaSuccess ? ERR_OK : cuda_failure(error, "cannot set a timer mark");
}

err_code_t device_timer_start(struct device_timer *t, struct device_stream *s)
{
  return mark(t->start, s);
}

err_code_t device_timer_stop(struct device_timer *t, struct device_stream *s)
{
  return mark(t->stop, s);
}

err_code_t device_timer_read(struct device_timer *t, double *ms)
{
  float found = 0;
  cudaError_t error = cudaEventSynchronize(t->stop);

  if (error == cudaSuccess)
    error = cudaEventElapsedTime(&found, t->start, t->stop);
  if (error != cudaSuccess)
    return cuda_failure(error, "cannot read a timer");
  *ms = (double)found;
  return ERR_OK;
}
