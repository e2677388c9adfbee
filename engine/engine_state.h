/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind `struct engine`. Private to engine*.c, searcher.c and search_*.c. */
#ifndef ENGINE_ENGINE_STATE_H
#define ENGINE_ENGINE_STATE_H

#include "engine/admission/filter_cache.h"
#include "engine/arena/lifetimes.h"
#include "engine/arena/pair.h"
#include "engine/engine.h"
#include "engine/team/team.h"

struct engine {
  struct space_table spaces;
  struct attributes attributes;
  struct lifetimes_plan lifetimes;
  struct engine_clock clock;
  int64_t time_ms; /* of the newest epoch. Thread: catalogue */
  _Atomic int64_t next_change_ms;
  size_t max_k;
  size_t max_batch;
  size_t max_items;
  const struct kernels *kernels;
  struct key_hash hash; /* of all keys */
  struct backends backends;
  size_t n_workers;           /* searchers that will be open at a time */
  _Atomic size_t n_searchers; /* those that are */
  struct pair *pair;
  struct filter_cache *filters;
  struct team *team; /* NULL: a search uses one thread */
  struct engine_threads threads;
  struct region batch; /* scratch memory of the catalogue thread: the batch that engine_apply() prepares */
};

/* What both arenas are made for. Valid while the engine is open. */
struct arena_plan engine_arena_plan(struct engine *e);

/* The wall clock, in milliseconds since 1970. */
int64_t engine_unix_ms(const struct engine *e);

/* The bytes of host memory that one item uses in both arenas. */
size_t engine_host_bytes_per_pair(const struct engine *e);

/* Find the attributes of lifetimes. Returns ERR_CONFIG if they are not there, or of another type. */
err_t engine_plan_lifetimes(const struct engine_config *config, struct engine *e);

/* Verify that there is room for one more space, in the memory of the machine and of its devices, beside the searchers
 * that are not open yet. Returns ERR_FULL with the bytes; an error of a device that nothing can take the place of.
 * Thread: catalogue. */
err_t engine_verify_room(struct engine *e, const struct space *space);

/* Verify that the machine and its devices have enough memory for max_items. Opening the arenas only reserves address
 * space. So this refuses a catalogue that can never fit, before the machine runs out of memory.
 *
 * counts_all  count all memory of a GPU, including what other processes use now: the running daemon may be one of them
 *
 * Returns ERR_CONFIG with the bytes and the number of items that fit.
 */
err_t engine_verify_memory(struct engine *e, bool counts_all);

#endif
