/* A backend: where arenas live and who searches them. Each has one table of column operations for each similarity. */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include "engine/columns.h"
#include "engine/similarity.h"

struct backend {
  const char *name;
  const struct columns_ops *columns[N_SIMILARITIES];
};

/* Host memory and the kernels of this processor: always there, and the reference for others. */
extern const struct backend backend_cpu;

#endif
