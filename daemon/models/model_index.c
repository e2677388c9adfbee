/* SPDX-License-Identifier: Apache-2.0 */
/* Parts pour in as long as a generation grows by more than a small share of its items in a second. */
#include "daemon/models/model_index.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/models/model_asked.h"
#include "engine/engine_spaces.h"

/* Building the index costs as much as inserting a tenth of the items: one that was begun too early costs little. */
enum { LOOK_EVERY_MS = 1000, POURING_SHARE = 64 };

static bool find(const struct model_work *w, size_t space, uint32_t generation, struct engine_space_info *out)
{
  return engine_space_find(w->engine, model_asked_name(w, space), generation, out);
}

/* Does the engine have the generation, and not its index? */
static bool lacks_index(const struct model_work *w, const struct model_entry *entry, struct engine_space_info *out)
{
  return entry->is_in_engine && find(w, entry->space, entry->generation, out) && !out->has_index;
}

bool model_index_pays(const struct model_work *w, const struct model_entry *entry)
{
  struct engine_space_info info, current;

  return lacks_index(w, entry, &info) && find(w, entry->space, 0, &current) && info.n_items > 0 &&
         info.n_items >= current.n_items / 2;
}

static void look_at(struct model_index *index, uint64_t n_items)
{
  index->is_due = n_items > 0 && n_items <= index->n_items + index->n_items / POURING_SHARE;
  index->n_items = n_items;
  index->look_due_ns = clock_now_ns() + LOOK_EVERY_MS * CLOCK_NS_PER_MS;
}

void model_index_look(struct model_work *w)
{
  struct engine_space_info info;

  for (size_t i = 0; i < w->entries.n; i++) {
    struct model_entry *entry = w->entries.v[i];
    if (entry->phase == MODEL_READY && clock_now_ns() >= entry->index.look_due_ns && lacks_index(w, entry, &info))
      look_at(&entry->index, info.n_items);
  }
}

struct model_entry *model_index_due(const struct model_work *w)
{
  struct engine_space_info info;

  for (size_t i = 0; i < w->entries.n; i++) {
    struct model_entry *entry = w->entries.v[i];
    bool is_due = entry->index.is_due || entry->generation == w->current[entry->space];
    if (entry->phase == MODEL_READY && is_due && lacks_index(w, entry, &info))
      return entry;
  }
  return NULL;
}

err_t model_index_step(struct model_work *w, struct model_entry *entry)
{
  struct engine_space_info info;

  if (!lacks_index(w, entry, &info))
    return ERR_OK;
  TRY(engine_build_index(w->engine, model_asked_name(w, entry->space), entry->generation));
  if (!lacks_index(w, entry, &info))
    log_info("model_indexed", "generation=%s items=%" PRIu64, entry->name, info.n_items);
  return ERR_OK;
}
