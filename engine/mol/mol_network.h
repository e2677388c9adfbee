/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes of a Mixture-of-Logits model's networks. docs/models.md has the formulas. */
#ifndef ENGINE_MOL_MOL_NETWORK_H
#define ENGINE_MOL_MOL_NETWORK_H

#include "engine/mol/mol_model.h"

/* Compute out = projection(x). x [n][n_in]; out [n][n_out]; scratch memory comes from the region. Returns ERR_MEMORY.
 */
err_t mol_network_project(const struct mol_projection *p, const struct kernels *kernels, const float *x, size_t n,
                          struct region *scratch, float *out);

/* Compute out = second(SiLU(first(x))). x [n][n_in]; out [n][n_out]. Returns ERR_MEMORY. */
err_t mol_network_gate(const struct mol_mlp *mlp, const struct kernels *kernels, const float *x, size_t n,
                       struct region *scratch, float *out);

/* Compute average[k], the mean over n components of components[.][k]. */
void mol_network_average(const float *components, size_t n, size_t dim, float *average);

#endif
