/* SPDX-License-Identifier: Apache-2.0 */
/* An array of a .npy or .safetensors file: vectors, codes or keys, a row each. Thread: one. */
#ifndef DAEMON_CTL_CTL_ARRAY_H
#define DAEMON_CTL_CTL_ARRAY_H

#include "base/err.h"
#include "engine/model/tensor.h"

struct ctl_npy;
struct safetensors;

struct ctl_array {
  struct ctl_npy *npy;      /* the file, or */
  struct safetensors *file; /* the file */
  struct tensor tensor;     /* valid while it is open */
};

/* Is it the name of such a file? Its end decides. */
bool ctl_array_is_file(const char *path);

/* Open a file and find its array.
 *
 * name    of the tensor in a .safetensors file; NULL: the only one of n_dims dimensions. NULL for .npy
 * types   TENSOR_TYPE_BITs that are allowed
 * n_dims  that it must have
 *
 * Returns ERR_ITEM or ERR_MODEL with the file, what is wrong and what to do; ERR_USAGE if a tensor must be named, or
 * must not.
 */
err_t ctl_array_open(const char *path, const char *name, unsigned types, size_t n_dims, struct ctl_array *out);
void ctl_array_fini(struct ctl_array *a);

#endif
