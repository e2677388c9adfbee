/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the device's fast functions with the bounds that the proofs assume: at every f32 on a real device, at a
 * sample of them on the model. */
#include <math.h>
#include <string.h>

#include "tests/gpu/check.h"
#include "tests/gpu/probe_kernels.h"
#include "tests/support/dice.h"

#ifdef SLUICE_CUDA_MODEL
enum { USUAL_STRIDE = 8191, QUICK_STRIDE = 65537 };
#else
enum { USUAL_STRIDE = 1, QUICK_STRIDE = 8191 };
#endif

static const struct {
  const char *name;
  double bound; /* of the relative error: what kernels/cuda/warp.cuh says */
} functions[PROBE_FUNCTIONS] = {
  [PROBE_EXP2] = { "exp2", 0x1p-22 },
  [PROBE_TANH] = { "tanh", 0x1p-11 },
  [PROBE_SQRT] = { "sqrt", 0x1p-22 },
  [PROBE_RECIPROCAL] = { "reciprocal", 0x1p-22 },
};

static float float_of_bits(uint32_t bits)
{
  float x;

  memcpy(&x, &bits, sizeof x);
  return x;
}

static void sweep(struct device_stream *stream, enum probe_function f, uint32_t first)
{
  uint32_t stride = (uint32_t)check_size(USUAL_STRIDE, QUICK_STRIDE);
  uint64_t n = ((uint64_t)1 << 32) / stride;
  struct probe_found *found, *device_found;

  CHECK_OK(device_alloc_host(1, sizeof *found, &found));
  CHECK_OK(device_alloc(1, sizeof *device_found, &device_found));
  CHECK_OK(device_fill(stream, device_found, 0, sizeof *device_found));
  CHECK_OK(probe_sweep(stream, f, first, stride, n, device_found));
  CHECK_OK(device_copy_out(stream, found, device_found, sizeof *found));
  CHECK_OK(device_wait(stream));
  double error = (double)float_of_bits((uint32_t)(found->worst >> 32));
  double x = (double)float_of_bits((uint32_t)found->worst);
  printf("%-10s %10llu inputs: largest relative error %.3g = 2^%.2f at %.9g; bound 2^%.0f; otherwise wrong: %llu\n",
         functions[f].name, (unsigned long long)n, error, log2(error), x, log2(functions[f].bound),
         (unsigned long long)found->n_wrong);
  CHECK(error <= functions[f].bound, "%s is off by %g at %.9g", functions[f].name, error, x);
  CHECK(found->n_wrong == 0, "%s is wrong at %llu inputs", functions[f].name, (unsigned long long)found->n_wrong);
  device_free(&device_found);
  device_free_host(&found);
}

int main(void)
{
  struct device_stream *stream;
  struct dice dice = { dice_seed() };

  check_begin("gpu_functions");
  CHECK_OK(device_stream_open(&stream));
  for (enum probe_function f = 0; f < PROBE_FUNCTIONS; f++)
    sweep(stream, f, (uint32_t)dice_u64(&dice));
  device_stream_close(&stream);
  return check_end("gpu_functions");
}
