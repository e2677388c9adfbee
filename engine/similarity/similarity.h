/* SPDX-License-Identifier: Apache-2.0 */
/* A similarity: the kind of a model. It knows which item parts and queries suit a model, and what is computed from them
 * once.
 *
 * This half does not depend on where the arenas are. columns.h has the other half, with one table for each backend.
 * similarity.c has the table of similarities, where a new one is added.
 */
#ifndef ENGINE_SIMILARITY_H
#define ENGINE_SIMILARITY_H

#include "base/query.h"
#include "base/region.h"
#include "engine/model/model_lengths.h"
#include "engine/model/safetensors.h"
#include "engine/similarity/methods.h"
#include "kernels/kernels.h"

struct prepared_queries;

enum similarity_kind {
  SIMILARITY_MOL,
  SIMILARITY_RECJPQ,
  SIMILARITY_DOT,
  SIMILARITY_COSINE,
  SIMILARITY_WEIGHTED_DOT,
  SIMILARITY_BILINEAR,
  N_SIMILARITIES
};

/* The first member of every model struct: the similarity that the model belongs to. */
struct model {
  enum similarity_kind kind;
};

struct similarity {
  enum similarity_kind kind;
  const char *name; /* the value of sluice.similarity in a model's metadata */
  const struct methods *methods;

  /* Load a model. Returns ERR_MODEL with the tensor or metadata key at fault. */
  err_t (*model_open)(const struct safetensors *file, struct model **model);
  void (*model_close)(struct model **model);

  /* Refuse everything that model_open would refuse, but within seconds. If loading the model takes longer, `*model` is
   * left unchanged. NULL: model_open never takes longer. */
  err_t (*model_check)(const struct safetensors *file, struct model **model);

  /* Return ERR_ITEM or ERR_QUERY with what the model needs. */
  err_t (*check_part)(const struct model *model, const struct part *part);
  err_t (*check_query)(const struct model *model, const struct query *query);

  struct model_lengths (*lengths)(const struct model *model);

  /* The bytes of one prepared part, in the format of columns_ops.put: a multiple of 4. */
  size_t (*prepared_bytes)(const struct model *model);

  /* Run the item's side of the model for n parts: compute what the columns keep of them. prepared [n][prepared_bytes],
   * aligned to 16. */
  err_t (*prepare_parts)(const struct model *model, const struct kernels *kernels, const struct part *const *parts,
                         size_t n, struct region *scratch, uint8_t *prepared);

  size_t parts_per_piece; /* parts that one of several threads prepares at a time; 0: one thread alone is faster */

  bool has_alike_queries; /* an item's part can take the place of a query's vector */

  size_t prepared_query_bytes; /* of one element of what prepare_queries makes */

  /* Run the query's side of the model for n queries. `*prepared` is what a search takes; it lives in the region. */
  err_t (*prepare_queries)(const struct model *model, const struct kernels *kernels, const struct query *const *queries,
                           size_t n, struct region *region, struct prepared_queries **prepared);
};

/* Find the similarity that a model file names in `sluice.similarity`. If the key is absent, keys below "mol." mean mol.
 * Returns ERR_MODEL if there is no such similarity, or if one of our keys is mistyped. */
err_t similarity_of(const struct safetensors *file, const struct similarity **out);

/* Return the similarity of a kind. Thread: any. */
const struct similarity *similarity_at(enum similarity_kind kind);

extern const struct similarity similarity_mol;
extern const struct similarity similarity_recjpq;
extern const struct similarity similarity_dot;
extern const struct similarity similarity_cosine;
extern const struct similarity similarity_weighted_dot;
extern const struct similarity similarity_bilinear;

#endif
