/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the store into the engine: several threads read, check, prepare and write items at once. */
#ifndef DAEMON_CATALOGUE_STORE_LOADING_H
#define DAEMON_CATALOGUE_STORE_LOADING_H

#include "engine/engine.h"
#include "store/store.h"

typedef err_code_t (*store_loading_check)(void *context, struct item_change *changes, size_t n);

struct store_loading {
  struct store *store;
  struct engine *engine;
  size_t n_threads;                 /* the caller included */
  const struct position *positions; /* [n_positions]: the watermark of the loaded catalogue */
  size_t n_positions;

  /* Gets each chunk of items before the engine does: removes parts that the engine cannot use. Its error ends the
   * loading. It must not call the store. Thread: several at once. NULL: all parts are usable. */
  store_loading_check check;
  void *context;
};

/* Replace the engine's items by those of the live catalogue, in one epoch. Returns an error of the scan, check or
 * engine_replace(). Thread: catalogue. */
err_t store_loading_run(const struct store_loading *loading);

#endif
