/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/similarity.h"

#include "engine/model/model_keys.h"

#define NAMES "mol, recjpq, dot, cosine, weighted_dot, bilinear"

static const struct similarity *const all[N_SIMILARITIES] = {
  [SIMILARITY_MOL] = &similarity_mol,
  [SIMILARITY_RECJPQ] = &similarity_recjpq,
  [SIMILARITY_DOT] = &similarity_dot,
  [SIMILARITY_COSINE] = &similarity_cosine,
  [SIMILARITY_WEIGHTED_DOT] = &similarity_weighted_dot,
  [SIMILARITY_BILINEAR] = &similarity_bilinear,
};

err_t similarity_of(const struct safetensors *file, const struct similarity **out)
{
  const char *name = safetensors_text(file, "sluice.similarity");

  TRY(model_keys_verify(file));
  if (!name && safetensors_text(file, "mol.Pq"))
    name = similarity_mol.name;
  if (!name)
    FAIL(ERR_MODEL, "%s: __metadata__ has no \"sluice.similarity\"; set it to one of " NAMES, safetensors_path(file));
  for (size_t i = 0; i < N_SIMILARITIES; i++) {
    if (strcmp(name, all[i]->name) == 0) {
      *out = all[i];
      return ERR_OK;
    }
  }
  FAIL(ERR_MODEL, "%s: sluice.similarity \"%s\" is none of " NAMES, safetensors_path(file), name);
}
