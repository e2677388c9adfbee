/* SPDX-License-Identifier: Apache-2.0 */
/* One search of a searcher: its queries are divided into groups, and each group is searched at once. Private to
 * searcher.c and search_rounds.c. */
#ifndef ENGINE_SEARCH_GROUPS_H
#define ENGINE_SEARCH_GROUPS_H

#include "engine/admission/admission.h"
#include "engine/engine_state.h"
#include "engine/search/members.h"

struct searcher {
  struct engine *engine;
  struct region scratch; /* holds one search, answers included */
  struct region kept;    /* what later rounds of the search need */
  struct device_worker *workers[BACKENDS_MAX];
  struct members *members; /* NULL: the engine has no team */
  struct search_pause pause;
  bool is_aside;     /* it costs no backend when it cannot be opened */
  bool is_uncounted; /* its searches take no thread from others */
};

/* Queries that are searched together. */
struct group {
  const struct query **queries; /* [n] */
  const struct admit **admits;  /* [n] */
  struct answer **answers;      /* [n] */
  size_t n;
};

enum group_kind {
  GROUP_ALL,      /* the method's search */
  GROUP_FEW,      /* the same on a GPU, for queries that admit few items */
  GROUP_ADMITTED, /* on a processor, just the admitted items */
  N_GROUPS
};

struct search {
  struct searcher *searcher;
  const struct arena *arena;
  const struct arena_space *in; /* what is searched */
  size_t backend;
  const struct method *method;
  const struct method_row *row;
  struct admission admission;
  struct group groups[N_GROUPS]; /* by the way in which they are searched */
  size_t n;                      /* queries of all groups */
};

static inline const struct backend *search_backend(const struct search *s)
{
  return s->searcher->engine->backends.at[s->backend];
}

/* The place of the space in the arena. */
static inline size_t search_place(const struct search *s)
{
  return (size_t)(s->in - s->arena->spaces);
}

/* Make a group without queries, with room for n. Returns ERR_MEMORY. */
err_t search_groups_init(struct region *region, size_t n, struct group *out);

/* Return where filters are evaluated. */
struct admission_target search_groups_target(const struct search *s);

/* Find what queries admit, for s->admission.
 *
 * queries  [n], without `like`
 *
 * Returns ERR_MEMORY.
 */
err_t search_groups_admit(struct search *s, const struct query *const *queries, size_t n);

/* Search queries, and write their answers. Returns ERR_MEMORY or ERR_DEVICE. */
err_t search_groups_search_all(struct search *s, const struct group *all);

/* Search one group of s->groups, and write its answers. Errors as above. */
err_t search_groups_search(const struct search *s, enum group_kind kind);

#endif
