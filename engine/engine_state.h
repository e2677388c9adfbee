/* What the engine is made of: shared by engine.c and searcher.c alone. */
#ifndef ENGINE_ENGINE_STATE_H
#define ENGINE_ENGINE_STATE_H

#include "engine/engine.h"
#include "engine/pair.h"

struct engine {
  struct space *spaces;
  size_t n_spaces;
  size_t max_k;
  size_t max_batch;
  size_t max_items;
  const struct kernels *kernels;
  struct backends backends;
  struct pair *pair;
  struct region batch; /* of the catalogue thread: what engine_apply() prepares */
};

#endif
