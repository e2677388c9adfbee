/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of inner products: their tables, and the search functions of their rows. A function vector_search_X is in
 * vector_X.c. */
#ifndef ENGINE_VECTOR_VECTOR_METHODS_H
#define ENGINE_VECTOR_VECTOR_METHODS_H

#include "engine/similarity/methods.h"

extern const struct methods vector_methods; /* dot, cosine, weighted_dot */
extern const struct methods bilinear_methods;

method_search vector_search_exact, vector_search_brute_force, vector_search_low_rank;

/* In engine/cuda/. */
method_search vector_cuda_search_exact, vector_cuda_search_low_rank;

#endif
