/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of .safetensors files: tensors by name, and text metadata.
 *
 * Every offset and shape in a file's header is checked against the size of the file before it is used.
 */
#ifndef ENGINE_MODEL_SAFETENSORS_H
#define ENGINE_MODEL_SAFETENSORS_H

#include "base/err.h"
#include "engine/model/tensor.h"

struct safetensors;

/* Open a file and read all of it. Returns ERR_MODEL with the path and what is wrong. */
err_t safetensors_open(const char *path, struct safetensors **out);

/* Open a file by mapping it, for files as large as a catalogue. Pages are read when their tensors are. The file must
 * not be truncated while it is open. */
err_t safetensors_map(const char *path, struct safetensors **out);

void safetensors_close(struct safetensors **f);

const char *safetensors_path(const struct safetensors *f);

/* The whole file. Valid while it is open. */
struct span safetensors_bytes(const struct safetensors *f);

/* The text of a metadata key, or NULL if it is absent. Valid while the file is open. */
const char *safetensors_text(const struct safetensors *f, const char *key);

/* Iterate over metadata keys or tensors. Returns the name after `previous`, the first name if `previous` is NULL, and
 * NULL at the end. `previous` must be a result of the same function. Names are valid while the file is open, until
 * safetensors_supply(). */
const char *safetensors_next_key(const struct safetensors *f, const char *previous);
const char *safetensors_next_tensor(const struct safetensors *f, const char *previous);

/* Add a metadata key that the file may lack. Returns ERR_MODEL if the file has the key with another text; ERR_MEMORY.
 */
err_t safetensors_supply(struct safetensors *f, const char *key, const char *text);

/* Read a metadata key as a number. Returns ERR_MODEL with the key if it is absent, not a number, or out of bounds. */
err_t safetensors_integer(const struct safetensors *f, const char *key, int64_t min, int64_t max, int64_t *out);
err_t safetensors_real(const struct safetensors *f, const char *key, double min, double max, double *out);

bool safetensors_has(const struct safetensors *f, const char *name);

/* Get the shape of a tensor. Returns ERR_MODEL if there is no such tensor; the message names one that looks similar. */
err_t safetensors_shape(const struct safetensors *f, const char *name, struct tensor_shape *out);

/* Get a tensor in place, without looking at its numbers.
 *
 * types  the TENSOR_TYPE_BITs of the allowed types
 * out    valid while the file is open, and as long as `name` is
 *
 * Returns ERR_MODEL with the tensor's name if it is absent, of another type, or not completely inside the file.
 */
err_t safetensors_tensor(const struct safetensors *f, const char *name, unsigned types, struct tensor *out);

/* Read a tensor of F32, F64, F16 or BF16 as f32. Every number must be finite and at most 10^6 in size.
 *
 * n_dims, ...  the required shape, as size_t arguments
 * out          an array that the caller frees with mem_free()
 *
 * Returns ERR_MODEL with the tensor's name if it is absent or has another type or shape.
 */
err_t safetensors_floats(const struct safetensors *f, const char *name, float **out, size_t n_dims, ...);

#endif
