/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask of the model of a device (cuda_model.h). The program's environment can ask the same:
 * SLUICE_CUDA_MODEL=on, or SLUICE_CUDA_MODEL=fail:N. Without either, the model says that there is no device. */
#ifndef CUDA_MODEL_CONTROL_H
#define CUDA_MODEL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether there is a device, and how much memory it has. */
void cuda_model_set_present(bool is_present);
void cuda_model_set_memory(size_t bytes);

/* What a block can have of shared memory: 227 KiB, as a Hopper card; 163 and 99 KiB are an A100's and an L4's. */
void cuda_model_set_shared(size_t bytes);

/* The n-th call from now that can fail fails, and all later ones too, as after an error of the device. 0: none. */
void cuda_model_fail_after(size_t n);

/* Calls that could have failed so far: what fail_after counts. */
size_t cuda_model_calls(void);

/* Of those, how many waited for a stream. */
size_t cuda_model_waits(void);

/* And how many were copies between host and device. */
size_t cuda_model_copies(void);

/* Whether tensor cores cut sums off, as some devices do, where the model rounds. */
void cuda_model_set_cutting(bool cuts);

#ifdef __cplusplus
}
#endif

#endif
