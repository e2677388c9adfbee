/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for the GPU tests. They need no test library, because they also run on machines with only a compiler and a
 * GPU. */
#ifndef TESTS_GPU_CHECK_H
#define TESTS_GPU_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "kernels/device.h"
#ifdef SLUICE_CUDA_MODEL
#include "tests/support/cuda_model/cuda_model_control.h"
#endif

static _Atomic size_t check_n; /* checks made so far */

#define CHECK(condition, ...)                                         \
  do {                                                                \
    check_n++;                                                        \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                   \
      fputc('\n', stderr);                                            \
      abort();                                                        \
    }                                                                 \
  } while (0)

#define CHECK_OK(call)                                                   \
  do {                                                                   \
    err_code_t check_err_ = (call);                                      \
    CHECK(check_err_ == ERR_OK, "%s (%s)", err_message(), err_origin()); \
  } while (0)

/* The size of a test: `usual`, or `quick` if SLUICE_GPU_QUICK is set, as it is on the model. What `quick` leaves out
 * should depend on the seed, so that other runs have it. */
static inline size_t check_size(size_t usual, size_t quick)
{
  return getenv("SLUICE_GPU_QUICK") ? quick : usual;
}

/* Find and print the device: a real one or the model. Exits with 77, which means skipped, if there is none. */
static inline void check_begin(const char *what)
{
  struct device device;

#ifdef SLUICE_CUDA_MODEL
  cuda_model_set_present(true);
#endif
  if (device_find(&device) != ERR_OK) {
    fprintf(stderr, "%s: %s\n", what, err_message());
    exit(77);
  }
  printf("%s on %s\n", what, device.name);
#ifdef SLUICE_CUDA_MODEL
  printf("SLUICE_SEED=%s SLUICE_CUDA_MODEL=%s\n", getenv("SLUICE_SEED"), cuda_model_modes());
#endif
}

static inline int check_end(const char *what)
{
  printf("%s: %zu checks passed\n", what, check_n);
  return check_n == 0;
}

#endif
