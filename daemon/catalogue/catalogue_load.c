/* SPDX-License-Identifier: Apache-2.0 */
/* Load the store into the arenas: at the start, and when a rebuilt catalogue replaces the served one. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "daemon/catalogue/store_loading.h"
#include "daemon/models/part_names.h"

/* How often a long load says how far it is. */
enum { SAY_EVERY_S = 10 };

/* Threads of a load while searches run: half of the processors. */
static size_t threads_beside_searches(void)
{
  return (cores_available() + 1) / 2;
}

/* The newest failure says why the part does not fit. */
static void note_unfit(struct catalogue *c, struct span key, struct span part)
{
  if (c->load.n_unusable++ == 0)
    log_warn("stored_part_unusable", "key=%s reason=%s note=\"it is not served until the item is sent again\"",
             log_quote(key), log_failure());
  if (c->models)
    models_note_unusable(c->models, part, key);
}

static void note_unusable(struct catalogue *c, struct span key, struct span part, bool is_known)
{
  pthread_mutex_lock(&c->load.lock);
  if (is_known)
    note_unfit(c, key, part);
  else if (!c->first_fill.is_under_way) /* otherwise it was counted when its record was read */
    unknown_names_count_part(&c->batch.unknown_spaces, part, c->with.config->catalogue.unknown_spaces);
  pthread_mutex_unlock(&c->load.lock);
}

/* Is it of a retired generation, whose parts are not all deleted yet? */
static bool is_being_removed(const struct catalogue *c, const struct part *part)
{
  return c->models && part_names_is_retired(models_state(c->models), part->space);
}

void catalogue_drop_unusable_parts(struct catalogue *c, struct item_change *change)
{
  size_t n = 0;

  for (size_t i = 0; i < change->n_parts; i++) {
    struct part *part = &change->parts[i];
    bool is_known = engine_has_space(c->with.engine, part->space);
    if (is_known && engine_check_part(c->with.engine, part) == ERR_OK)
      change->parts[n++] = *part;
    else if (!is_being_removed(c, part))
      note_unusable(c, change->key, part->space, is_known);
  }
  change->n_parts = n;
}

/* How far a load is: what its threads share. */
struct load_progress {
  struct catalogue *catalogue;
  uint64_t n_items;
  int64_t begin_ns;
  _Atomic uint64_t n_read;
  _Atomic int64_t say_due_ns;
};

/* Log how far a long load is. Only one thread finds it due. */
static void say_progress(struct load_progress *progress, uint64_t n_read)
{
  int64_t now = clock_now_ns(), due = atomic_load(&progress->say_due_ns);

  if (now < due || !atomic_compare_exchange_strong(&progress->say_due_ns, &due, now + SAY_EVERY_S * CLOCK_NS_PER_S))
    return;
  double seconds = (double)(now - progress->begin_ns) / (double)CLOCK_NS_PER_S;
  double rate = (double)n_read / seconds;
  log_info("store_loading", "items=%" PRIu64 " of=%" PRIu64 " items_per_s=%.0f remaining_s=%.0f", n_read,
           progress->n_items, rate, (double)(progress->n_items - n_read) / rate);
}

static err_code_t check_chunk(void *context, struct item_change *changes, size_t n)
{
  struct load_progress *progress = context;

  pulse_beat();
  if (catalogue_is_stopping(progress->catalogue))
    return err_set(ERR_STOPPING, __FILE__, __LINE__, "the daemon is stopping");
  for (size_t i = 0; i < n; i++)
    catalogue_drop_unusable_parts(progress->catalogue, &changes[i]);
  say_progress(progress, atomic_fetch_add(&progress->n_read, n) + n);
  return ERR_OK;
}

static err_t run_load(struct catalogue *c, size_t n_threads, const struct position *positions, size_t n)
{
  struct store_stats stats;
  int64_t begin = clock_now_ns();

  store_stats(c->with.store, &stats);
  c->load.n_unusable = 0;
  if (c->models)
    models_note_loading(c->models);
  struct load_progress progress = { c, stats.n_items, begin, 0, begin + SAY_EVERY_S * CLOCK_NS_PER_S };
  struct store_loading loading = {
    .store = c->with.store,
    .engine = c->with.engine,
    .n_threads = n_threads,
    .positions = positions,
    .n_positions = n,
    .check = check_chunk,
    .context = &progress,
  };

  TRY(store_loading_run(&loading));
  c->first_fill.is_under_way = false;
  if (c->models)
    TRY(models_note_loaded(c->models));
  log_info("store_loaded", "items=%" PRIu64 " unusable_parts=%" PRIu64 " took_ms=%" PRId64 " threads=%zu",
           stats.n_items, c->load.n_unusable, (clock_now_ns() - begin) / CLOCK_NS_PER_MS, n_threads);
  return ERR_OK;
}

err_t catalogue_load(struct catalogue *c, const struct position *positions, size_t n)
{
  return run_load(c, cores_available(), positions, n);
}

err_t catalogue_replace(struct catalogue *c)
{
  struct position *positions;
  size_t n;

  region_reset(&c->scratch);
  TRY(catalogue_list_watermark(c, &positions, &n));
  return run_load(c, catalogue_is_serving(c) ? threads_beside_searches() : cores_available(), positions, n);
}
