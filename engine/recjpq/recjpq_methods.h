/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of RecJPQ: their table, and the search functions of its rows. A function recjpq_search_X is in
 * recjpq_X.c, except where a comment names the file. */
#ifndef ENGINE_RECJPQ_RECJPQ_METHODS_H
#define ENGINE_RECJPQ_RECJPQ_METHODS_H

#include "engine/similarity/methods.h"

extern const struct methods recjpq_methods;

method_search recjpq_search_exact, recjpq_search_pqtopk, recjpq_search_default, recjpq_search_admitted;
method_search recjpq_search_prune, recjpq_search_prune_inflated, recjpq_search_prune_limited; /* recjpq_prune.c */

/* In engine/cuda/. */
method_search recjpq_cuda_search;

#endif
