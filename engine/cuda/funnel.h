/* SPDX-License-Identifier: Apache-2.0 */
/* A search of the device: a scan bounds every item's score from both sides, lists keep the items that may be among the
 * K best, and their scores, computed once and for all as everywhere (the canonical routine), decide.
 *
 *   floor    a score that K items are known to reach, for each query: of a subset of tiles of items, the K-th largest
 * of each tile's largest lower bound, or what a similarity knows better append   items whose upper bound reaches the
 * floor score    their scores; those that reach the K-th best go to the host, ties included
 *
 * The host orders them by score and key. Where more items reach a floor than a list can keep, as when all are alike,
 * the query is searched again in stretches that fit, with the K-th best score so far as its floor: slow, and exact.
 * Excluded items are found with the others and left out by the host, so that a query with E of them asks for K + E.
 */
#ifndef ENGINE_CUDA_FUNNEL_H
#define ENGINE_CUDA_FUNNEL_H

#include "engine/cuda/device_columns.h"
#include "engine/cuda/device_worker.h"
#include "kernels/cuda/candidates.h"
#include "kernels/cuda/lists.h"

/* Slots that a scan looks at. */
struct slot_range {
  size_t first; /* a multiple of DEVICE_TILE_ITEMS */
  size_t n;
};

/* Queries of a batch that are searched together, and their arrays on the device. */
struct funnel_group {
  size_t first, n;            /* queries of the batch */
  void *queries;              /* what the similarity's upload made, on the device or not */
  const uint32_t *ranks;      /* [n]: K + E */
  const uint32_t *ks;         /* [n]: K */
  const uint32_t *n_excluded; /* [n]: E; NULL: zeros */
  float *floors;              /* [n] */
  float *thresholds;          /* [n] */
  struct device_lists lists;  /* n of them */
  struct device_lists hits;
};

struct funnel {
  const struct device_columns *columns;
  struct search_batch *batch;
  const struct funnel_ops *ops;
  const void *context; /* the similarity's own */
  size_t n_candidates; /* items that group->lists keep at least, besides what the ranks ask for */
};

struct funnel_ops {
  /* Make group->queries of queries group->first and on. Inputs that it leaves are sent behind it. */
  err_t (*upload)(const struct funnel *f, struct funnel_group *group);

  /* Bytes of inputs that a query takes. */
  size_t (*query_bytes)(const struct funnel *f);

  /* Bytes of scratch that a query takes in upload, floor, append and score. NULL: none. */
  size_t (*scratch_bytes)(const struct funnel *f);

  /* floors[q], for the n queries of a group: at most the ranks[q]-th best score; -inf where none is known. NULL: from
   * maxima. */
  err_t (*floor)(const struct funnel *f, struct funnel_group *group);

  /* maxima[q][t] = the largest lower bound on the score of a present item of tile t * stride, for t < n_tiles; -inf
   * where there is none. */
  err_t (*maxima)(const struct funnel *f, const struct funnel_group *group, size_t stride, size_t n_tiles,
                  float *maxima);

  /* Append to list q the present items of the range whose upper bound reaches floors[q]. Scores may be left open. */
  err_t (*append)(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                  const float *floors);

  /* The scores of what is in the lists. NULL: append leaves them behind. */
  err_t (*score)(const struct funnel *f, const struct funnel_group *group);

  /* What append is where a query is searched in stretches: of approximate searches, whose append does not bound all
   * items. Such a query's search is exact. NULL: append. */
  err_t (*exhaust)(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                   const float *floors);

  /* A group's work on the device is done, and its outputs were received. May be NULL. */
  void (*collect)(const struct funnel *f, const struct funnel_group *group);

  /* Fill receipt and counts of query q of the batch; counts.scored is what was in its lists. is_exact: it was searched
   * in stretches. NULL: the receipt of an exact search. */
  void (*receipt)(const struct funnel *f, size_t q, bool is_exact);
};

/* Search the batch and fill its results, receipts of an exact search included. */
err_t funnel_search(struct funnel *f);

/* Lists for n queries, of the worker's scratch. */
err_t funnel_lists(struct device_worker *w, size_t n_lists, size_t capacity, struct device_lists *out);

/* Inputs of a group: its ranks, and the slots that its queries exclude. */
err_t funnel_upload_ranks(const struct funnel *f, struct funnel_group *group);
err_t funnel_upload_excluded(const struct funnel *f, const struct funnel_group *group, struct candidates_excluded *out);

static inline struct device_worker *funnel_worker(const struct funnel *f)
{
  return f->batch->worker;
}

#endif
