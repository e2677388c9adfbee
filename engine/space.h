/* A space: a name, a model, and its similarity. It does not change while the engine is open. */
#ifndef ENGINE_SPACE_H
#define ENGINE_SPACE_H

#include "engine/similarity.h"

struct space {
  char *name;
  const struct similarity *similarity;
  void *model;
};

err_t space_init(const char *name, const char *model_path, struct space *out);
void space_fini(struct space *s);

#endif
