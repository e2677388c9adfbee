#include "engine/similarity.h"

static const struct similarity *const all[N_SIMILARITIES] = {
  [SIMILARITY_MOL] = &similarity_mol,
  [SIMILARITY_RECJPQ] = &similarity_recjpq,
};

err_t similarity_of(const struct safetensors *file, const struct similarity **out)
{
  const char *name = safetensors_text(file, "sluice.similarity");

  if (!name && safetensors_text(file, "mol.Pq"))
    name = similarity_mol.name;
  if (!name)
    FAIL(ERR_MODEL, "%s: __metadata__ has no \"sluice.similarity\"; set it to mol or recjpq", safetensors_path(file));
  for (size_t i = 0; i < N_SIMILARITIES; i++) {
    if (strcmp(name, all[i]->name) == 0) {
      *out = all[i];
      return ERR_OK;
    }
  }
  FAIL(ERR_MODEL, "%s: sluice.similarity \"%s\" is none of mol, recjpq", safetensors_path(file), name);
}
