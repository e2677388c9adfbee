/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind `struct engine`. Private to engine*.c and searcher.c. */
#ifndef ENGINE_ENGINE_STATE_H
#define ENGINE_ENGINE_STATE_H

#include "engine/engine.h"
#include "engine/pair.h"
#include "engine/team.h"

struct engine {
  struct space *spaces;
  size_t n_spaces;
  size_t max_k;
  size_t max_batch;
  size_t max_items;
  const struct kernels *kernels;
  struct backends backends;
  size_t n_workers;
  struct pair *pair;
  struct team *team; /* NULL: a search uses one thread */
  struct engine_threads threads;
  struct region batch; /* scratch memory of the catalogue thread: the batch that engine_apply() prepares */
};

/* The bytes of host memory that one item uses in one arena. */
size_t engine_host_bytes_per_item(const struct engine *e);

/* Verify that the machine and its devices have enough memory for max_items. Opening the arenas only reserves address
 * space. So this refuses a catalogue that can never fit, before the machine runs out of memory.
 *
 * counts_all  count all memory of a GPU, including what other processes use now: the running daemon may be one of them
 *
 * Returns ERR_CONFIG with the bytes and the number of items that fit.
 */
err_t engine_verify_memory(struct engine *e, bool counts_all);

#endif
