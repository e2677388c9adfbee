/* SPDX-License-Identifier: Apache-2.0 */
/* An index comes first: it takes few steps. Then a generation that is being filled, because somebody may wait to switch
 * to it. */
#include "daemon/models/model_walks.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/models/model_fill.h"
#include "daemon/models/model_index.h"

enum { FULL_WAIT_MS = 1000 };

/* Return the number of items of the next step. A walk begins with few: its model and its items may be slower than those
 * of the walk before it. */
static size_t step_items(const struct model_entry *entry, size_t n_items)
{
  return entry->n_walked == 0 ? FILL_ITEMS_MIN : n_items;
}

/* Adapt the number of items of the steps. */
static void pace(size_t *n_items, size_t max, int64_t begin_ns)
{
  *n_items = model_fill_pace(*n_items, max, (clock_now_ns() - begin_ns) / CLOCK_NS_PER_MS);
}

static err_t fill(struct model_work *w, struct model_entry *entry)
{
  int64_t begin_ns = clock_now_ns();

  w->fill_items = step_items(entry, w->fill_items);
  TRY(model_fill_step(entry, w->engine, w->store, w->fill_items, &w->region));
  pace(&w->fill_items, FILL_ITEMS_MAX, begin_ns);
  if (entry->walk.is_over)
    log_info("model_filled", "generation=%s items=%" PRIu64 " parts=%" PRIu64 " unusable_parts=%" PRIu64, entry->name,
             entry->n_walked, entry->n_filled, entry->n_unusable);
  return ERR_OK;
}

/* Fill first, then build the index, if the parts are there. */
static err_t make_ready(struct model_work *w, struct model_entry *entry)
{
  if (!entry->walk.is_over)
    TRY(fill(w, entry));
  else
    TRY(model_index_step(w, entry));
  if (entry->walk.is_over && !model_index_comes_first(w, entry))
    model_entry_enter(entry, MODEL_READY);
  return ERR_OK;
}

/* On a full disk, try again later: a delete writes too. */
static err_t remove_parts(struct model_work *w, struct model_entry *entry, const struct model_entry **removed)
{
  int64_t begin_ns = clock_now_ns();

  w->remove_items = step_items(entry, w->remove_items);
  err_code_t err = model_fill_remove_step(entry, w->store, w->remove_items);
  if (err == ERR_STORE_FULL) {
    w->remove_due_ns = clock_now_ns() + FULL_WAIT_MS * CLOCK_NS_PER_MS;
    return ERR_OK;
  }
  TRY(err);
  pace(&w->remove_items, REMOVE_ITEMS_MAX, begin_ns);
  if (!entry->walk.is_over)
    return ERR_OK;
  model_entry_enter(entry, MODEL_REMOVED);
  *removed = entry;
  return ERR_OK;
}

/* Records that were read before the retirement may still reach the store during a first fill, and be in a second
 * catalogue during a rebuild. Only a walk after that finds all parts. */
static bool may_remove(const struct model_work *w, bool may_fill)
{
  return may_fill && !store_is_rebuilding(w->store) && clock_now_ns() >= w->remove_due_ns;
}

err_t model_walks_step(struct model_work *w, bool may_fill, const struct model_entry **removed)
{
  struct model_entry *filling = model_entries_find_phase(&w->entries, MODEL_FILLING),
                     *removing = model_entries_find_phase(&w->entries, MODEL_REMOVING), *lacking = model_index_due(w);

  if (lacking && may_fill)
    return model_index_step(w, lacking);
  if (filling && may_fill)
    return make_ready(w, filling);
  region_trim(&w->region, 0); /* of a fill that has ended */
  return removing && may_remove(w, may_fill) ? remove_parts(w, removing, removed) : ERR_OK;
}

bool model_walks_are_due(const struct model_work *w, bool may_fill)
{
  return (may_fill && (model_entries_find_phase(&w->entries, MODEL_FILLING) || model_index_due(w))) ||
         (may_remove(w, may_fill) && model_entries_find_phase(&w->entries, MODEL_REMOVING));
}
