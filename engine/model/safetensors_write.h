/* SPDX-License-Identifier: Apache-2.0 */
/* Writer of .safetensors files. */
#ifndef ENGINE_MODEL_SAFETENSORS_WRITE_H
#define ENGINE_MODEL_SAFETENSORS_WRITE_H

#include "base/err.h"
#include "engine/model/tensor.h"

struct safetensors_entry {
  const char *key;
  const char *value; /* UTF-8 */
};

/* Write a file with these tensors and metadata: whole or not at all, as it is written beside its place and renamed.
 *
 * The widest types lie first, so that every number is aligned; those of one type in the order given.
 *
 * Returns ERR_SYSTEM with the path and the reason; then what was at the path before is still there. Blocks: on disk.
 */
err_t safetensors_write(const char *path, const struct safetensors_entry *metadata, size_t n_metadata,
                        const struct tensor *tensors, size_t n_tensors);

/* Verify that a file can be written there, before hours of work. Returns ERR_SYSTEM with the path and the reason. */
err_t safetensors_verify_writable(const char *path);

#endif
