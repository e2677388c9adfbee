/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend, found at run time: the same programs run with and without it.
 *
 * It is the shared library libsluice_cuda.so, in the program's folder (a build) or in ../lib/sluice beside it
 * (installed in /usr/bin, so /usr/lib/sluice). It uses the program's own functions, so it must be of the same version.
 * A program that contains the backend, such as a test, needs no library.
 */
#ifndef ENGINE_CUDA_MODULE_H
#define ENGINE_CUDA_MODULE_H

#include "base/err.h"
#include "engine/backend/backend.h"
#include "kernels/device.h"

/* What the module exports. */
struct cuda_module {
  const char *version; /* first, so that it can be read from a module of any version */
  const struct backend *backend;
  err_code_t (*find_device)(struct device *out); /* device_find() of kernels/device.h */
};
extern const struct cuda_module sluice_cuda_module;

/* Find the module. It is loaded once and stays.
 *
 * Returns ERR_DEVICE: there is none, it cannot be loaded, or it is of another version.
 * Thread: any. Blocks: the first time.
 */
err_t cuda_module_find(const struct cuda_module **out);

/* Find the module and, with it, the GPU: device_find(). Its errors, and those of cuda_module_find(). */
err_t cuda_module_find_device(struct device *out);

#endif
