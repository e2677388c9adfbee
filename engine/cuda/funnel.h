/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of every search on the device. A scan bounds every item's score, lists keep the items that may be among
 * the K best, and their canonical scores decide.
 *
 * 1. floor: find a score that K items are known to reach, for each query. By default a scan finds the largest lower
 *    bound of each tile in a sample of tiles, and the K-th largest of these is the floor. A similarity may know a
 *    better one.
 * 2. append: list the items whose upper bound reaches the floor.
 * 3. refine: find a higher floor from the listed items, and drop those whose upper bound does not reach it. A
 *    similarity whose bounds are tight does without.
 * 4. score: compute the canonical scores of the items that are left. Those that reach the K-th best go to the host,
 *    ties included.
 *
 * The host orders them by score and key. A list overflows when too many items reach a floor, for example because all
 * are alike. Then the query is searched again, range by range of slots that fit. The floor is then the K-th best score
 * so far, of the first search or this one. This is slow but exact.
 *
 * Only items that a query admits count, in every step. A floor that other items reach could be above the K-th best
 * admitted item and lose it. Where a query's words leave items out, all scans read them. Excluded items are the
 * exception: they are found like admitted ones and dropped by the host, so a query that excludes E items asks for
 * K + E.
 *
 * The device makes the words of some queries at the beginning (struct admit.program). How many items these admit is
 * known after the search. Before, it has a bound, and that decides whether they are few.
 *
 * Queries that admit few items are searched apart from others (search_batch.admits_few). Their admitted items fit into
 * a list, so there is no scan: step 2 lists all of them, and step 1 is left out.
 */
#ifndef ENGINE_CUDA_FUNNEL_H
#define ENGINE_CUDA_FUNNEL_H

#include "engine/cuda/device_columns.h"
#include "engine/cuda/device_programs.h"
#include "engine/cuda/device_worker.h"
#include "engine/search/search_batch.h"
#include "kernels/cuda/admitted.h"
#include "kernels/cuda/candidates.h"
#include "kernels/cuda/lists.h"

/* The slots of a scan. */
struct slot_range {
  size_t first; /* a multiple of DEVICE_TILE_ITEMS */
  size_t n;
};

/* Queries of a batch that are searched together, and their arrays on the device. */
struct funnel_group {
  size_t first, n;            /* the batch's queries `first` to `first + n - 1` */
  void *queries;              /* the similarity's own, made by upload */
  const uint32_t *ranks;      /* [n]: K + E */
  const uint32_t *ks;         /* [n]: K */
  const uint32_t *n_excluded; /* [n]: E; NULL: zeros */
  struct admitted_words admitted;
  const uint64_t *const *words;    /* [n]: admitted.of on the host; NULL if that is */
  struct device_programs programs; /* of the queries whose words the device makes */
  float *floors;                   /* [n] */
  const float *maxima;             /* [n][n_maxima]: of a sample of tiles; only if floors come from maxima */
  size_t n_maxima;
  float *thresholds;          /* [n]; after the last step the ranks[q]-th best score found, -inf if there are fewer */
  struct device_lists lists;  /* n of them */
  struct device_lists scored; /* the lists to score: `lists`, or what refine leaves of them */
  struct device_lists hits;
  uint32_t *n_listed;      /* [n]: the lengths of `lists`, written by hits; NULL: they are copied to the host */
  struct device_lists all; /* those of the three that are emptied, for their lengths alone */
};

struct funnel {
  const struct device_columns *columns;
  struct search_batch *batch;
  const struct funnel_ops *ops;
  const void *context; /* the method's own */
  size_t n_candidates; /* group->lists have at least this capacity */
  size_t n_sampled;    /* floors come from at least this many tiles, if there are as many */
};

struct funnel_ops {
  /* Build group->queries from the batch. Inputs that it adds without sending are sent right after it. */
  err_t (*upload)(const struct funnel *f, struct funnel_group *group);

  /* Input bytes per query. */
  size_t (*query_bytes)(const struct funnel *f);

  /* Scratch bytes per query for upload, floor, append and score. NULL: none. */
  size_t (*scratch_bytes)(const struct funnel *f);

  /* Set the group's floors[q] to at most the ranks[q]-th best score of an admitted item; -inf if none is known. NULL:
   * floors come from maxima. */
  err_t (*floor)(const struct funnel *f, struct funnel_group *group);

  /* Set maxima[q][t], for t < n_tiles, to the largest lower bound on the score of an admitted item of tile t * stride;
   * -inf if there is none. */
  err_t (*maxima)(const struct funnel *f, const struct funnel_group *group, size_t stride, size_t n_tiles,
                  float *maxima);

  /* maxima empties group->all too, so no operation of its own has to. */
  bool empties_lists;

  /* append finds floors itself, from group->maxima, so no operation of its own has to. Its range is then all slots, and
   * its `floors` are undefined. */
  bool finds_floors;

  /* Append to list q the admitted items of the range that may reach floors[q]. Their scores may be undefined. */
  err_t (*append)(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                  const float *floors);

  /* Set the scores of listed items to upper bounds, if append has not, and the group's floors[q] to at most the
   * ranks[q]-th best score of these items; -inf if none is known. Entries whose upper bound is below that are then
   * dropped. NULL: there is no such step. */
  err_t (*refine)(const struct funnel *f, const struct funnel_group *group);

  /* Score all entries of these lists, one list per query of the group. NULL: append has scored them. */
  err_t (*score)(const struct funnel *f, const struct funnel_group *group, const struct device_lists *lists);

  /* Replaces the end of a first search: score all entries of group->scored, set the group's thresholds[q] to the
   * ranks[q]-th best score or -inf, hits to the entries that reach them, and n_listed. It only writes to these arrays:
   * they may be the host's. Not together with refine. NULL: these are steps of their own. */
  err_t (*hits)(const struct funnel *f, const struct funnel_group *group);

  /* Replaces append when a query is searched again range by range. For approximate searches, whose append does not
   * cover all items; the second search is exact. NULL: append. */
  err_t (*exhaust)(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                   const float *floors);

  /* Called when a group's outputs have been received. May be NULL. */
  void (*collect)(const struct funnel *f, const struct funnel_group *group);

  /* Fill the receipt and counts of the batch's query q; counts.scored is the number of items that were scored.
   * is_exact: it was searched again range by range. NULL: the receipt of an exact search. */
  void (*receipt)(const struct funnel *f, size_t q, bool is_exact);
};

/* Search the batch and fill its results, receipts included. */
err_t funnel_search(struct funnel *f);

/* backend.admits_few: do the admitted items fit into a list, and are they a small part of all? To score a listed item
 * takes longer than to scan one. */
bool funnel_admits_few(const struct admit *admit, uint64_t n_items);

/* funnel_ops.floor and append for batches that admit few items, or for searches that need no floor. */
err_t funnel_no_floor(const struct funnel *f, struct funnel_group *group);
err_t funnel_append_admitted(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors);

/* Allocate n_lists lists in the worker's scratch. */
err_t funnel_lists(struct device_worker *w, size_t n_lists, size_t capacity, struct device_lists *out);

/* Add a group's inputs: its ranks, and the slots that its queries exclude. */
err_t funnel_upload_ranks(const struct funnel *f, struct funnel_group *group);
err_t funnel_upload_excluded(const struct funnel *f, const struct funnel_group *group, struct candidates_excluded *out);

static inline struct device_worker *funnel_worker(const struct funnel *f)
{
  return f->batch->worker;
}

/* The largest rank of the batch's queries, at least 1. */
size_t funnel_max_rank(const struct search_batch *batch);

/* Tiles of the arena. */
static inline size_t funnel_n_tiles(const struct search_batch *batch)
{
  return (batch->n_slots + DEVICE_TILE_ITEMS - 1) / DEVICE_TILE_ITEMS;
}

/* Words of a set of slots, 32 slots each. */
static inline size_t funnel_n_words(const struct search_batch *batch)
{
  return (batch->n_slots + 31) / 32;
}

#endif
