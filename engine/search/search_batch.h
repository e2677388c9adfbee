/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of queries that is searched in the columns of a space, and its results. */
#ifndef ENGINE_SEARCH_BATCH_H
#define ENGINE_SEARCH_BATCH_H

#include <string.h>

#include "base/query.h"
#include "base/region.h"
#include "engine/similarity/admit.h"
#include "kernels/kernels.h"
#include "kernels/topk.h"

struct device_attributes;
struct device_worker;
struct prepared_queries;
struct share;

/* One query of a batch and its result. If members of a team share the search (share.h), each has its own. */
struct search_result {
  struct admit admit;
  float min_score;  /* items that score less may be skipped; -inf: none */
  float floor;      /* at least min_score, or a score that K admitted items are known to reach if that is higher */
  struct topk topk; /* initialised and finished by the caller */
  struct receipt receipt;
  struct counts counts;
};

/* What a search on the processor calls between its steps. */
struct search_pause {
  void (*call)(void *context); /* NULL: nothing */
  void *context;
};

enum { SHARE_JOBS = 4 }; /* jobs of a search that members claim steps of, one job after the other */

/* A batch: queries of one space and one method that are searched together. */
struct search_batch {
  const struct kernels *kernels;
  struct device_worker *worker; /* the worker's memory on the device; NULL if the columns are in host memory */
  const struct device_attributes *attributes; /* copies of the arena's attributes on the device; NULL: there are none */
  const struct method *method;
  const struct prepared_queries *prepared; /* [n], from the prepare_queries of the columns or the similarity */
  size_t prepared_bytes;                   /* of one query */
  size_t n;
  struct search_result *results; /* [n] */
  size_t n_slots;                /* slots of the arena */
  uint64_t n_items;              /* slots that have a part of this space */
  bool admits_few;               /* on a GPU: every query admits few items. Just these are scored */
  struct region *scratch;

  /* Of one member of the team that shares the search. See share.h. */
  const struct search_pause *pause;
  struct share *share; /* NULL: the search has one member */
  size_t member;
  size_t n_claimed[SHARE_JOBS]; /* without a share: steps that were claimed */
};

/* Return the n queries from `first` on as a batch that nobody shares. Its results are those of the batch. */
static inline struct search_batch search_batch_slice(const struct search_batch *batch, size_t first, size_t n)
{
  struct search_batch slice = *batch;

  slice.prepared = (const struct prepared_queries *)((const char *)batch->prepared + first * batch->prepared_bytes);
  slice.results = batch->results + first;
  slice.n = n;
  slice.share = NULL;
  memset(slice.n_claimed, 0, sizeof slice.n_claimed);
  return slice;
}

#endif
