/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of Mixture-of-Logits: their table, and the search functions of its rows. A function mol_search_X is in
 * mol_X.c, except where a comment names the file. */
#ifndef ENGINE_MOL_MOL_METHODS_H
#define ENGINE_MOL_MOL_METHODS_H

#include "engine/similarity/methods.h"

extern const struct methods mol_methods;

method_search mol_search_brute_force, mol_search_exact, mol_search_two_pass;
/* In mol_approximate.c. */
method_search mol_search_average, mol_search_per_embedding, mol_search_combined, mol_search_admitted;

/* In engine/cuda/. */
method_search mol_cuda_search_exact, mol_cuda_search_two_pass;
method_search mol_cuda_search_average, mol_cuda_search_per_embedding, mol_cuda_search_combined;

#endif
