/* SPDX-License-Identifier: Apache-2.0 */
/* Load the store into the arenas: at the start, and when a rebuilt catalogue replaces the served one. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

void catalogue_drop_unusable_parts(struct catalogue *c, struct item_change *change)
{
  size_t n = 0;

  for (size_t i = 0; i < change->n_parts; i++) {
    struct part *part = &change->parts[i];
    if (!engine_has_space(c->with.engine, part->space))
      unknown_spaces_count(&c->batch.unknown, part->space, c->with.config->catalogue.unknown_spaces);
    else if (engine_check_part(c->with.engine, part) == ERR_OK)
      change->parts[n++] = *part;
    else if (c->n_unusable++ == 0)
      log_warn("stored_part_unusable", "key=%s reason=%s note=\"it is not served until the item is sent again\"",
               log_quote(change->key), log_failure());
  }
  change->n_parts = n;
}

static err_t drop_unusable(struct catalogue *c, struct item_change *changes, size_t n)
{
  pulse_beat();
  if (catalogue_is_stopping(c))
    return err_set(ERR_STOPPING, __FILE__, __LINE__, "the daemon is stopping");
  for (size_t i = 0; i < n; i++)
    catalogue_drop_unusable_parts(c, &changes[i]);
  return ERR_OK;
}

static err_code_t load_chunk(void *context, struct item_change *changes, size_t n)
{
  struct catalogue *c = context;

  TRY(drop_unusable(c, changes, n));
  return engine_apply(c->with.engine, changes, n, NULL, 0);
}

err_t catalogue_load(struct catalogue *c)
{
  int64_t begin = clock_now_ns();
  struct store_stats stats;

  TRY(store_scan(c->with.store, CATALOGUE_LOAD_CHUNK, load_chunk, c));
  store_stats(c->with.store, &stats);
  log_info("store_loaded", "items=%" PRIu64 " unusable_parts=%" PRIu64 " took_ms=%" PRId64, stats.n_items,
           c->n_unusable, (clock_now_ns() - begin) / CLOCK_NS_PER_MS);
  return ERR_OK;
}

struct feed {
  struct catalogue *catalogue;
  struct engine_filling *filling;
};

static err_code_t feed_chunk(void *context, struct item_change *changes, size_t n)
{
  struct feed *feed = context;

  TRY(drop_unusable(feed->catalogue, changes, n));
  return engine_take(feed->filling, changes, n);
}

static err_code_t feed_store(void *context, struct engine_filling *filling)
{
  struct catalogue *c = context;
  struct feed feed = { c, filling };

  return store_scan(c->with.store, CATALOGUE_LOAD_CHUNK, feed_chunk, &feed);
}

err_t catalogue_replace(struct catalogue *c)
{
  struct position *positions;
  size_t n;

  region_reset(&c->scratch);
  TRY(catalogue_list_watermark(c, &positions, &n));
  return engine_replace(c->with.engine, feed_store, c, positions, n);
}
