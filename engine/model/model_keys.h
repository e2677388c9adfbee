/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata keys that Sluice knows. Keys below other prefixes than ours belong to the user. */
#ifndef ENGINE_MODEL_MODEL_KEYS_H
#define ENGINE_MODEL_MODEL_KEYS_H

#include "engine/model/safetensors.h"

/* Verify that every key below "sluice.", "mol." and "recjpq." is known. A mistyped key would silently leave its
 * hyper-parameter unset. Returns ERR_MODEL with the key and the nearest known one. Thread: any. */
err_t model_keys_verify(const struct safetensors *file);

#endif
