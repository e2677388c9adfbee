/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of a similarity, one row for each: its name, its arguments and their bounds, whether it is exact, and its
 * search function on each backend.
 *
 * Everything that knows methods reads this table: the check of a query, the error that lists them, the searcher, and
 * the texts for users. A new method is one row, and one file for each backend.
 */
#ifndef ENGINE_METHODS_H
#define ENGINE_METHODS_H

#include "base/err.h"
#include "base/query.h"

struct columns;
struct model;
struct search_batch;

/* Search a batch in columns of the row's similarity. Fills topk, receipt and counts of each result. */
typedef err_code_t method_search(const struct columns *columns, struct search_batch *batch);

/* An argument of a method: an integer of at least 1, unless the row says otherwise. */
struct method_arg {
  const char *name;                             /* the name in messages, like "N"; NULL: there is no such argument */
  uint32_t min;                                 /* 0 means 1 */
  uint32_t max;                                 /* 0 means UINT32_MAX */
  uint32_t (*model_max)(const struct model *m); /* the largest value, if it depends on the model; else NULL */
};

struct method_row {
  const char *name;
  bool is_exact; /* the answer is proven to be the K best items */
  /* On a processor, the search learns what is admitted from admit_slot() and the words alone, and asks about an item
   * before a threshold depends on it. So excluded keys can be looked up late. */
  bool checks_late;
  struct method_arg args[METHOD_ARGS_MAX];
  /* On a processor, members of a team share a search (share.h). Each has at least this many items times queries to
   * search, which takes some 100 us: waking a helper takes as long. */
  uint32_t items_per_member;
  /* 0: the search function claims steps. Otherwise members claim queries, at most this many at a time, and search them
   * as batches of their own. */
  uint32_t queries_per_claim;
  struct {
    method_search *on_cpu;
    const char *on_cuda; /* a function's name, because the module that has it is found at run time (cuda_module.h) */
  } search;
  /* On a processor, a search that scores just the admitted items, for filters that admit few. The answer is the same.
   * Scoring an item by its slot takes as long as searching items_per_admitted items. 0: the method's largest argument
   * is a number of candidates, and with at most as many admitted items, all of them are candidates. */
  uint32_t items_per_admitted;
  method_search *search_admitted; /* NULL: there is none */
  const char *summary;            /* one line for users: what the method does */
};

/* The search functions of a row. The macro takes both, so that none is forgotten. */
#define METHOD_SEARCHES(on_cpu, on_cuda) \
  {                                      \
    (on_cpu), #on_cuda                   \
  }

struct methods {
  const struct method_row *rows;
  size_t n;
};

/* Find the row of a method by its name and number of arguments. Returns NULL if the similarity does not have it. */
const struct method_row *methods_find(const struct methods *methods, const struct method *method);

/* Verify that a similarity has the method and that the arguments are within their bounds for this model. Returns
 * ERR_METHOD; the message lists the methods of the similarity. */
err_t methods_verify(const struct methods *methods, const char *similarity, const struct model *model,
                     const struct method *method);

/* Print a row, like "combined(N1,N2)". text [METHOD_TEXT_MAX]. */
void methods_print_row(const struct method_row *row, char *text);

/* Print all rows, like "exact, average(N) or combined(N1,N2)". text [METHODS_TEXT_MAX]. */
enum { METHODS_TEXT_MAX = 256 };
void methods_print(const struct methods *methods, char *text);

#endif
