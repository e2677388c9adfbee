/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of .safetensors files: tensors by name and text metadata.
 *
 * Every offset and shape in a file's header is checked against its size before use.
 */
#ifndef ENGINE_MODEL_SAFETENSORS_H
#define ENGINE_MODEL_SAFETENSORS_H

#include "base/err.h"
#include "engine/model/tensor.h"

struct safetensors;

/* Open a file and read it whole. Returns ERR_MODEL with the path and what is wrong. */
err_t safetensors_open(const char *path, struct safetensors **out);

/* The same without a copy, for files as large as a catalogue: pages are read as their tensors are. Nobody may cut the
 * file short while it is open. */
err_t safetensors_map(const char *path, struct safetensors **out);

void safetensors_close(struct safetensors **f);

const char *safetensors_path(const struct safetensors *f);

/* Text of a metadata key, NULL when absent; valid while the file is open. */
const char *safetensors_text(const struct safetensors *f, const char *key);

/* The metadata key or the tensor that follows the previous one, which must come from here; NULL gives the first, and
 * ends them. Valid while the file is open and nothing is supplied. */
const char *safetensors_next_key(const struct safetensors *f, const char *previous);
const char *safetensors_next_tensor(const struct safetensors *f, const char *previous);

/* Add a metadata key that the file may lack. What the file says itself stays. Returns ERR_MODEL, when the file says
 * something else; ERR_MEMORY. */
err_t safetensors_supply(struct safetensors *f, const char *key, const char *text);

/* A metadata key as a number within bounds. Returns ERR_MODEL with the key when it is absent, no number or out of
 * bounds. */
err_t safetensors_integer(const struct safetensors *f, const char *key, int64_t min, int64_t max, int64_t *out);
err_t safetensors_real(const struct safetensors *f, const char *key, double min, double max, double *out);

bool safetensors_has(const struct safetensors *f, const char *name);

/* Returns ERR_MODEL with the name when there is no such tensor, and with one that looks like it. */
err_t safetensors_shape(const struct safetensors *f, const char *name, struct tensor_shape *out);

/* A tensor where it lies in the file: its numbers are not looked at.
 *
 * types  TENSOR_TYPE_BITs of those that it may have
 * out    valid while the file is open, as is `name`
 *
 * Returns ERR_MODEL with the tensor's name when it is absent, of another type, or not wholly in the file.
 */
err_t safetensors_tensor(const struct safetensors *f, const char *name, unsigned types, struct tensor *out);

/* A tensor as f32, from F32, F64, F16 or BF16; every number must be finite and at most 10^6 in size.
 *
 * n_dims, ...  the shape that it must have, as size_t arguments
 * out          array, the caller's to mem_free()
 *
 * Returns ERR_MODEL with the tensor's name when it is absent or of another type or shape.
 */
err_t safetensors_floats(const struct safetensors *f, const char *name, float **out, size_t n_dims, ...);

#endif
