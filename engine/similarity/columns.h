/* SPDX-License-Identifier: Apache-2.0 */
/* Columns: what an arena keeps of one space, indexed by slot.
 *
 * Each pair of a similarity and a backend (backend.h) has one table of operations. The catalogue thread writes the
 * columns of the back arena. Many workers search the columns of the front arena at the same time; searches write
 * nothing but what they keep for each other under a lock of its own (recjpq_present.h).
 */
#ifndef ENGINE_COLUMNS_H
#define ENGINE_COLUMNS_H

#include "base/query.h"
#include "base/region.h"
#include "engine/load_block.h"
#include "kernels/kernels.h"

struct model;
struct score_tables;

/* The first member of every columns struct: the operations that opened it. */
struct columns {
  const struct columns_ops *ops;
};

/* Queries that a similarity has prepared: an array of a type of its own. The header of its model has a function that
 * casts to that type. */
struct prepared_queries;

#define COLUMNS_NEW_SLOT UINT32_MAX
enum { COLUMNS_PREFETCH_STEPS = 2 };

struct columns_ops {
  /* Reserve columns for `capacity` slots. The model must stay valid while they are open. */
  err_t (*open)(const struct model *model, size_t capacity, struct columns **out);
  void (*close)(struct columns **c);
  size_t (*bytes_per_item)(const struct model *model);

  /* Bytes that columns take whatever their capacity is. NULL: few. */
  size_t (*fixed_bytes)(const struct model *model);

  /* Prepare queries for searches of such columns, as similarity.prepare_queries does. NULL: that one does it. */
  err_t (*prepare_queries)(const struct model *model, const struct kernels *kernels, const struct query *const *queries,
                           size_t n, struct region *region, struct prepared_queries **prepared);

  /* Write a prepared part into a slot. is_new: the slot has no part of this space yet. */
  err_t (*put)(struct columns *c, uint32_t slot, bool is_new, const uint8_t *prepared);

  /* Fetch what put() will touch into the cache. Called for several parts in turn: step 0 for each of them, then step 1,
   * then put. What was fetched may turn out to be of no use. NULL: put() needs no help.
   * slot  COLUMNS_NEW_SLOT: the slot after those in use, or near it */
  void (*prefetch)(const struct columns *c, uint32_t slot, const uint8_t *prepared, int step);

  /* Put a part into a slot of columns that are being loaded: they were empty, nobody searches them, no slot is written
   * twice, defer_index() comes before, and build_index() and flush() come at the end. Several threads may call this at
   * once, each for other blocks of LOAD_BLOCK_SLOTS slots. NULL: use put, in one thread at a time. */
  err_t (*load)(struct columns *c, uint32_t slot, const uint8_t *prepared);

  /* Copy the parts of slots first..first+n-1 into columns that are being loaded, from columns of the same model that
   * may be searched meanwhile. The slots are in one block of LOAD_BLOCK_SLOTS, and all have a part. Threads as for
   * load; if load is NULL, in one thread at a time, and slots between them may have none. */
  err_t (*copy)(struct columns *c, const struct columns *from, uint32_t first, size_t n);

  /* Remove the part of a slot that has one. */
  void (*drop)(struct columns *c, uint32_t slot);

  /* Move the part of slot `from` to slot `to`, which has none. Afterwards `from` has none. */
  void (*move)(struct columns *c, uint32_t from, uint32_t to);

  /* Give back the memory of slots from..to-1, which have no part. Slots from `to` on must not have had one since the
   * last call. NULL: there is nothing to give back. */
  void (*trim)(struct columns *c, size_t from, size_t to);

  /* Read the vector of a slot that has a part: items with similar directions of their vectors are like each other. If
   * the similarity has_alike_queries, it is also the data of a query that is like the item. It lives in the region.
   * NULL: the columns cannot tell. Returns ERR_MEMORY. */
  err_t (*read_vector)(const struct columns *c, uint32_t slot, struct region *region, struct floats *out);

  /* Make the tables of one prepared query (score_tables.h). They live in the region, and are valid as long as a search
   * of the columns. n_items: slots with a part. NULL: scores are no sums of table entries, or not in host memory.
   * Returns ERR_MEMORY. */
  err_t (*score_tables)(const struct columns *c, const struct prepared_queries *query, uint64_t n_items,
                        const struct kernels *kernels, struct region *region, struct score_tables **out);

  /* What only makes searches faster is an index. Stop keeping it while many parts come: it is built afterwards, and
   * until it is complete, searches do without. The columns are empty. NULL: there is no index. */
  void (*defer_index)(struct columns *c);

  /* Build all of a deferred index, in several threads; none is built yet.
   *
   * has_part  a bit for each slot with a part
   * n_slots   slots from here on have none
   *
   * Returns ERR_MEMORY; the columns must not be used after that. NULL: there is no index. */
  err_t (*build_index)(struct columns *c, const uint64_t *has_part, size_t n_slots);

  /* Take a step of at most about a tenth of a second to build a deferred index, or do nothing if it is complete.
   *
   * other  columns of the same model with the same parts in the same slots, which may be searched meanwhile: what they
   *        have of the index is copied
   *
   * Other parameters, errors and NULL as build_index. */
  err_t (*continue_index)(struct columns *c, const struct columns *other, const uint64_t *has_part, size_t n_slots);

  /* Is the index complete, or off? NULL: there is none to wait for. */
  bool (*has_index)(const struct columns *c);

  /* Make all writes visible to searches that begin from now on. NULL: they are visible anyway. */
  err_t (*flush)(struct columns *c);
};

extern const struct columns_ops mol_columns_cuda;
extern const struct columns_ops recjpq_columns_cuda;
extern const struct columns_ops vector_columns_cuda;

extern const struct columns_ops mol_columns_cpu;
extern const struct columns_ops recjpq_columns_cpu;
extern const struct columns_ops vector_columns_cpu; /* dot, cosine, weighted_dot, bilinear */

#endif
