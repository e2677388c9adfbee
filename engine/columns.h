/* SPDX-License-Identifier: Apache-2.0 */
/* Columns: what an arena keeps of one space, indexed by slot; and a batch of queries that is searched in them.
 *
 * One table of operations a similarity and a backend (backend.h). Writes happen on the back arena, by the catalogue
 * thread alone; searches on the front arena, by many workers at once, which write nothing.
 */
#ifndef ENGINE_COLUMNS_H
#define ENGINE_COLUMNS_H

#include "base/query.h"
#include "base/region.h"
#include "engine/admit.h"
#include "kernels/kernels.h"
#include "kernels/topk.h"

struct model;

/* What every struct of columns begins with: who opened them. */
struct columns {
  const struct columns_ops *ops;
};

/* Queries as a similarity has prepared them: an array of its own type, which its model's header casts them to. */
struct prepared_queries;

/* One query of a batch, and its result. */
struct search_result {
  struct admit admit;
  struct topk topk; /* initialised by the caller; finished by it too */
  struct receipt receipt;
  struct counts counts;
};

struct device_worker;

struct search_batch {
  const struct kernels *kernels;
  struct device_worker *worker; /* what the worker has of the device; NULL where the columns are in host memory */
  const struct method *method;
  const struct prepared_queries *prepared; /* [n], of similarity.prepare_queries */
  size_t n;
  struct search_result *results; /* [n] */
  size_t n_slots;                /* slots of the arena */
  uint64_t n_items;              /* slots that have a part of this space */
  struct region *scratch;
};

struct columns_ops {
  /* Reserve columns for so many slots. The model stays valid while they are open. */
  err_t (*open)(const struct model *model, size_t capacity, struct columns **out);
  void (*close)(struct columns **c);
  size_t (*bytes_per_item)(const struct model *model);

  /* Write a prepared part into a slot. is_new: the slot has none of this space. */
  err_t (*put)(struct columns *c, uint32_t slot, bool is_new, const uint8_t *prepared);

  /* Forget the part in a slot that has one. */
  void (*drop)(struct columns *c, uint32_t slot);

  /* Move the part of slot `from` to `to`, which has none; `from` has none afterwards. */
  void (*move)(struct columns *c, uint32_t from, uint32_t to);

  /* Give the memory of slots from..to-1 back: none of them has a part, and those from `to` on had none since the last
   * call. NULL: there is nothing to give back. */
  void (*trim)(struct columns *c, size_t from, size_t to);

  /* Make what was written visible to searches that begin from now on. NULL: it is anyway. */
  err_t (*flush)(struct columns *c);
};

extern const struct columns_ops mol_columns_cuda;
extern const struct columns_ops recjpq_columns_cuda;
extern const struct columns_ops vector_columns_cuda;

extern const struct columns_ops mol_columns_cpu;
extern const struct columns_ops recjpq_columns_cpu;
extern const struct columns_ops vector_columns_cpu; /* dot, cosine, weighted_dot, bilinear */

#endif
