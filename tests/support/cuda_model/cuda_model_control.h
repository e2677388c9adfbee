/* SPDX-License-Identifier: Apache-2.0 */
/* Controls of the model of a device (cuda_model.h), for tests. By default the model reports no device. The environment
 * can change that. SLUICE_CUDA_MODEL is a list of words, separated by commas:
 *
 *   on       there is a device
 *   fail:N   and it fails from its N-th call on
 *   eager    copies and kernels run at once, not when their stream is waited for
 *   mixed    each time either, at random
 *   watch    each access of a kernel is checked for races and for memory that nobody wrote; a kernel takes some five
 *            times as long. The address sanitizer's build cannot watch
 *   ampere   tensor cores add as those of that generation do, see below, and there are no warpgroups
 *   hopper   likewise, with warpgroups, which is the default
 *
 * SLUICE_SEED sets the random order of blocks, warps and lanes. Without it the clock does; messages name the seed. The
 * host cannot touch device memory unless SLUICE_CUDA_MODEL_PROTECT=off. */
#ifndef CUDA_MODEL_CONTROL_H
#define CUDA_MODEL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set whether there is a device, and its memory in bytes. */
void cuda_model_set_present(bool is_present);
void cuda_model_set_memory(size_t bytes);

/* Set the CUDA version that the driver supports, as 13000 for 13.0. The runtime's is 13.0; an older driver cannot
 * start. 0: there is no driver. */
void cuda_model_set_driver(int version);

/* Set the shared memory of a block, in bytes. The default is 227 KiB, a Hopper card's; an A100 has 163 KiB, an L4 99
 * KiB. */
void cuda_model_set_shared(size_t bytes);

/* The words of SLUICE_CUDA_MODEL, or "on". */
const char *cuda_model_modes(void);

/* Make the n-th of the following calls that can fail return an error, and all later ones too, as a real device does. 0:
 * no call fails. */
void cuda_model_fail_after(size_t n);

/* Number of calls so far that can fail. cuda_model_fail_after() counts these. */
size_t cuda_model_calls(void);

/* Number of those calls that waited for a stream. */
size_t cuda_model_waits(void);

/* Number of those calls that were copies between host and device. */
size_t cuda_model_copies(void);

/* How tensor cores add. The generations cut terms to the bits of the largest exponent and the sum to f32, and a
 * subnormal half counts as large as the smallest normal one; cuda_model_mma.cc has the rules. */
enum cuda_model_tensor_cores {
  CUDA_MODEL_NEAREST, /* every sum is rounded to f32; the default */
  CUDA_MODEL_AMPERE,
  CUDA_MODEL_HOPPER
};
void cuda_model_set_tensor_cores(enum cuda_model_tensor_cores cores);

#ifdef __cplusplus
}
#endif

#endif
