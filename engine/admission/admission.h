/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: what each query of a batch admits. Its filter becomes a bit for each slot, its excluded keys become slots.
 *
 * Queries with the same filter share the bits: in a batch, and, by the cache, until something changes that the filter
 * sees.
 *
 * Where a device can make the bits, a filter that comes for the first time becomes a program for it. Host bits are the
 * better choice otherwise: if the cache has them, they may be on the device already; if it has those of a former
 * version, a few words are patched; and a filter that comes a second time in a version will come a third time. All
 * these have an exact count before the search, too.
 */
#ifndef ENGINE_ADMISSION_H
#define ENGINE_ADMISSION_H

#include "base/query.h"
#include "base/region.h"
#include "engine/admission/filter_cache.h"
#include "engine/arena/arena.h"
#include "engine/similarity/admit.h"

/* Where a batch searches. */
struct admission_target {
  const struct arena *arena;
  size_t space;
  struct filter_cache *cache;
  bool checks_late; /* the search can look up excluded keys when an item may enter the top K */
  bool makes_words; /* the search can make the words of a filter from its program (struct admit) */
};

/* What a batch admits. All zeros: nothing is held. */
struct admission {
  struct admit *admits; /* [n] by query */
  struct filter_cache *cache;
  struct filter_entry **held; /* [n_held] entries of the cache that the words lie in */
  size_t n_held;
};

/* Find what each query admits in an arena.
 *
 * queries  [n], checked
 * region   the results live here
 * out      all zeros before. The caller calls admission_release() after an error too
 *
 * Returns ERR_MEMORY. Thread: the search worker that holds the arena.
 */
err_t admission_find(const struct admission_target *target, const struct query *const *queries, size_t n,
                     struct region *region, struct admission *out);

/* Find the words of one more filter: slots of the space that it admits and that are alive.
 *
 * tree, key  as in struct query: of a boost of a query that admission_find() was called for; once for each
 * region     the words may live here
 *
 * Returns ERR_MEMORY.
 */
err_t admission_find_words(const struct admission_target *target, const struct filter_node *tree, struct span key,
                           struct region *region, struct admission *out, const uint64_t **words);

/* Release the words, when the batch has been searched. */
void admission_release(struct admission *a);

#endif
