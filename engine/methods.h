/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of a similarity, one row each: its name, its arguments and their bounds, what it promises, and the
 * function that searches by it on each backend.
 *
 * Everything that knows methods reads this table: the check of a query, the error that lists them, the searcher, and
 * what people read. A new method is one row, and one file for each backend.
 */
#ifndef ENGINE_METHODS_H
#define ENGINE_METHODS_H

#include "base/err.h"
#include "base/query.h"

struct columns;
struct model;
struct search_batch;

enum backend_kind { BACKEND_CPU, BACKEND_CUDA, N_BACKENDS };

/* Search a batch in columns of the row's similarity: fill topk, receipt and counts of each result. */
typedef err_code_t method_search(const struct columns *columns, struct search_batch *batch);

/* An argument of a method: an integer from 1 up, unless the row says otherwise. */
struct method_arg {
  const char *name;                             /* as people read it, "N"; NULL: there is no such argument */
  uint32_t min;                                 /* 0: 1 */
  uint32_t max;                                 /* 0: UINT32_MAX */
  uint32_t (*model_max)(const struct model *m); /* where the model sets the largest; else NULL */
};

struct method_row {
  const char *name;
  bool is_exact; /* the answer is proven to be the K best */
  struct method_arg args[METHOD_ARGS_MAX];
  method_search *search[N_BACKENDS];
  const char *summary; /* for people: what it does, in a line */
};

/* The functions of a row. It takes both, so that none is forgotten; a build without CUDA does not have the second. */
#ifdef SLUICE_CUDA
#define METHOD_SEARCHES(on_cpu, on_cuda)                    \
  {                                                         \
    [BACKEND_CPU] = (on_cpu), [BACKEND_CUDA] = (on_cuda)    \
  }
#else
#define METHOD_SEARCHES(on_cpu, on_cuda) \
  {                                      \
    [BACKEND_CPU] = (on_cpu)             \
  }
#endif

struct methods {
  const struct method_row *rows;
  size_t n;
};

/* The row of a method by name and number of arguments; NULL when the similarity does not have it. */
const struct method_row *methods_find(const struct methods *methods, const struct method *method);

/* Verify that a similarity has the method and that its arguments are within their bounds for this model.
 * Returns ERR_METHOD with the methods that there are. */
err_t methods_verify(const struct methods *methods, const char *similarity, const struct model *model,
                     const struct method *method);

/* "combined(N1,N2)": to text [METHOD_TEXT_MAX]. */
void methods_print_row(const struct method_row *row, char *text);

/* "exact, average(N) or combined(N1,N2)": to text [METHODS_TEXT_MAX]. */
enum { METHODS_TEXT_MAX = 256 };
void methods_print(const struct methods *methods, char *text);

#endif
