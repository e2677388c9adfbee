/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread takes chunks of the scan and gives them to the engine, until all are taken or one thread has failed. */
#include "daemon/catalogue/store_loading.h"

#include <stdatomic.h>

#include "base/parallel.h"

struct work {
  const struct store_loading *loading;
  struct engine_loading *into;
  struct store_scan scan;
  _Atomic bool has_failed;
};

static err_t load_chunk(struct work *w, struct region *region, bool *is_over)
{
  const struct store_loading *loading = w->loading;
  struct item_change *changes;
  uint64_t first;
  size_t n;

  region_reset(region);
  TRY(store_scan_next(&w->scan, region, &first, &changes, &n));
  *is_over = n == 0;
  if (n == 0)
    return ERR_OK;
  if (loading->check)
    TRY(loading->check(loading->context, changes, n));
  return engine_loading_put(w->into, region, first, changes, n);
}

static err_code_t load_chunks(void *context)
{
  AUTO(region_fini) struct region region = { 0 };
  struct work *w = context;
  bool is_over = false;
  err_code_t err = ERR_OK;

  while (!is_over && err == ERR_OK && !atomic_load_explicit(&w->has_failed, memory_order_relaxed))
    err = load_chunk(w, &region, &is_over);
  if (err != ERR_OK)
    atomic_store(&w->has_failed, true);
  return err;
}

static err_code_t feed(void *context, struct engine_loading *into)
{
  const struct store_loading *loading = context;
  struct work work = { .loading = loading, .into = into };

  TRY(store_scan_begin(loading->store, LOAD_BLOCK_SLOTS, &work.scan));
  TRY(parallel_run(loading->n_threads, load_chunks, &work));
  return store_scan_end(&work.scan);
}

err_t store_loading_run(const struct store_loading *loading)
{
  return engine_replace(loading->engine, feed, (void *)(uintptr_t)loading, loading->n_threads, loading->positions,
                        loading->n_positions);
}
