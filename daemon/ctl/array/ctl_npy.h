/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of numpy's .npy files: one array, mapped into memory. Thread: one. */
#ifndef DAEMON_CTL_CTL_NPY_H
#define DAEMON_CTL_CTL_NPY_H

#include "engine/model/tensor.h"
#include "base/err.h"

struct ctl_npy;

/* Map a file. It must not be truncated while it is open. Arrays in Fortran's order, of the other byte order, and of
 * types that no tensor has are refused.
 *
 * Returns ERR_ITEM with the path, what is wrong and what to do.
 */
err_t ctl_npy_map(const char *path, struct ctl_npy **out);
void ctl_npy_close(struct ctl_npy **f);

/* The array. It is valid while the file is open. */
const struct tensor *ctl_npy_tensor(const struct ctl_npy *f);

#endif
