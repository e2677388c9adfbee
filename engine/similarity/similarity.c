/* SPDX-License-Identifier: Apache-2.0 */
/* The table of similarities. CONTRIBUTING.md says what a new similarity needs besides its row here. */
#include "engine/similarity/similarity.h"

#include <stdio.h>

#include "engine/model/model_keys.h"

static const struct similarity *const all[N_SIMILARITIES] = {
  [SIMILARITY_MOL] = &similarity_mol,
  [SIMILARITY_RECJPQ] = &similarity_recjpq,
  [SIMILARITY_DOT] = &similarity_dot,
  [SIMILARITY_COSINE] = &similarity_cosine,
  [SIMILARITY_WEIGHTED_DOT] = &similarity_weighted_dot,
  [SIMILARITY_BILINEAR] = &similarity_bilinear,
};

const struct similarity *similarity_at(enum similarity_kind kind)
{
  return all[kind];
}

/* Print the names of all similarities: "mol, recjpq, ...". */
static const char *names(char *text, size_t capacity)
{
  size_t n = 0;

  for (size_t i = 0; i < N_SIMILARITIES && n < capacity; i++)
    n += (size_t)snprintf(text + n, capacity - n, "%s%s", i ? ", " : "", all[i]->name);
  return text;
}

err_t similarity_of(const struct safetensors *file, const struct similarity **out)
{
  const char *name = safetensors_text(file, "sluice.similarity");
  char text[128];

  TRY(model_keys_verify(file));
  if (!name && safetensors_text(file, "mol.Pq"))
    name = similarity_mol.name;
  if (!name)
    FAIL(ERR_MODEL, "%s: __metadata__ has no \"sluice.similarity\"; set it to one of %s", safetensors_path(file),
         names(text, sizeof text));
  for (size_t i = 0; i < N_SIMILARITIES; i++) {
    if (strcmp(name, all[i]->name) == 0) {
      *out = all[i];
      return ERR_OK;
    }
  }
  FAIL(ERR_MODEL, "%s: sluice.similarity \"%s\" is not one of %s", safetensors_path(file), name,
       names(text, sizeof text));
}
