/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine is made of: shared by the files engine*.c and searcher.c alone. */
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

/* Of the host's memory, what an item takes in one arena. */
size_t engine_host_bytes_per_item(const struct engine *e);

/* Refuse now what could never fit, not when the machine is out of memory: both arenas are reserved at start.
 *
 * counts_all  of a GPU, count the memory that others have now, too: the running daemon may be one of them
 *
 * Returns ERR_CONFIG, with the bytes and the number of items that fit. */
err_t engine_verify_memory(struct engine *e, bool counts_all);

#endif
