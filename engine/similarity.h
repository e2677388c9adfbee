/* SPDX-License-Identifier: Apache-2.0 */
/* A similarity: what a model is, which item parts and queries suit it, and what is computed of them once.
 *
 * This half does not depend on where the arenas are; columns.h has the other half, one table for each backend.
 * The table of similarities is in similarity.c: a new one is added there.
 */
#ifndef ENGINE_SIMILARITY_H
#define ENGINE_SIMILARITY_H

#include "base/query.h"
#include "base/region.h"
#include "engine/methods.h"
#include "engine/model/safetensors.h"
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

/* What every struct of a model begins with: the similarity that it belongs to. */
struct model {
  enum similarity_kind kind;
};

struct similarity {
  enum similarity_kind kind;
  const char *name; /* sluice.similarity in a model's metadata */
  const struct methods *methods;

  /* Load a model; ERR_MODEL names the tensor or metadata key at fault. */
  err_t (*model_open)(const struct safetensors *file, struct model **model);
  void (*model_close)(struct model **model);

  /* Refuse what model_open refuses, in seconds: of a model that takes longer `*model` is left as it is. NULL:
   * model_open never takes longer. */
  err_t (*model_check)(const struct safetensors *file, struct model **model);

  /* ERR_ITEM or ERR_QUERY says what the model needs. */
  err_t (*check_part)(const struct model *model, const struct part *part);
  err_t (*check_query)(const struct model *model, const struct query *query);

  /* Bytes of one prepared part, as columns take it; a multiple of 4. */
  size_t (*prepared_bytes)(const struct model *model);

  /* Compute what the columns keep, of n parts: the item's side of the model. prepared [n][prepared_bytes], aligned
   * to 16. */
  err_t (*prepare_parts)(const struct model *model, const struct kernels *kernels, const struct part *const *parts, size_t n,
                         struct region *scratch, uint8_t *prepared);

  /* Compute the query's side, of n queries: `*prepared` is what the columns' search takes, in the region. */
  err_t (*prepare_queries)(const struct model *model, const struct kernels *kernels, const struct query *const *queries,
                           size_t n, struct region *region, struct prepared_queries **prepared);
};

/* The similarity that a model file names in `sluice.similarity`; where that is absent, "mol.*" keys mean mol.
 * Returns ERR_MODEL when it names none that we have, and where a key of ours is mistyped. */
err_t similarity_of(const struct safetensors *file, const struct similarity **out);

/* The table: of a kind, its row. Thread: any. */
const struct similarity *similarity_at(enum similarity_kind kind);

extern const struct similarity similarity_mol;
extern const struct similarity similarity_recjpq;
extern const struct similarity similarity_dot;
extern const struct similarity similarity_cosine;
extern const struct similarity similarity_weighted_dot;
extern const struct similarity similarity_bilinear;

#endif
