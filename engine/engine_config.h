/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine is opened with: its spaces, its backend, its limits. Plain data, apart from engine.h because what the
 * engine is made of reads it too. */
#ifndef ENGINE_ENGINE_CONFIG_H
#define ENGINE_ENGINE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attributes.h"
#include "kernels/isa.h"

struct engine_space {
  const char *name;
  const char *model_path; /* .safetensors */
  size_t dim;             /* dimension of a vector, if the model file does not state it; 0: the file does */
  bool has_no_cells;      /* recjpq: keep no cells; only codes, which all methods scan */
  uint32_t generation;    /* of this name; 0 and 1: the first */
  uint32_t parts_of;      /* it uses the parts of this generation; 0: it has its own */
};

/* Where the arenas are kept. ENGINE_CPU: in host memory. ENGINE_CUDA: in a GPU's memory. ENGINE_AUTO: in both, so that
 * the processor takes over if the GPU fails; without a GPU it is the same as ENGINE_CPU. */
enum engine_backend { ENGINE_CPU, ENGINE_CUDA, ENGINE_AUTO };

/* Find a backend by its name: "cpu", "cuda" or "auto". Returns false if there is none. */
static inline bool engine_backend_find(const char *name, enum engine_backend *out)
{
  static const char *const names[] = { "cpu", "cuda", "auto" };

  for (int i = 0; i < 3; i++) {
    if (strcmp(name, names[i]) == 0) {
      *out = (enum engine_backend)i;
      return true;
    }
  }
  return false;
}

/* The wall clock, in milliseconds since 1970. */
struct engine_clock {
  int64_t (*unix_ms)(void *context); /* NULL: the machine's clock */
  void *context;
};

/* The attributes of type `time` that say when an item's life begins and ends. NULL or "": none. An item is never
 * returned before the one, nor from the other on. */
struct engine_lifetimes {
  const char *not_before;
  const char *expires;
  struct engine_clock clock;
};

struct engine_config {
  const struct engine_space *spaces; /* they differ in name or generation; the first of a name is the current one */
  size_t n_spaces;
  size_t max_items; /* the arenas are reserved for this many items */
  size_t max_k;
  size_t max_batch; /* maximum number of queries of one search */
  enum isa isa;
  enum engine_backend backend;
  size_t n_workers;             /* searchers that will be open at a time; 0: one. Only for the check of memory */
  struct attributes attributes; /* of items; engine_open() copies them */
  struct engine_lifetimes lifetimes;
};

#endif
