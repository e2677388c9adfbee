/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a model's metadata that Sluice knows. Keys below other prefixes than ours are the user's own. */
#ifndef ENGINE_MODEL_MODEL_KEYS_H
#define ENGINE_MODEL_MODEL_KEYS_H

#include "engine/model/safetensors.h"

/* Refuse keys below "sluice.", "mol." and "recjpq." that mean nothing: a mistyped key would leave its hyper-parameter
 * unsaid. Returns ERR_MODEL with the key and the nearest known one. Thread: any. */
err_t model_keys_verify(const struct safetensors *file);

#endif
