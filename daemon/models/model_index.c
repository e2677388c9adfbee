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

static uint64_t count_items(const struct model_work *w, const struct model_entry *entry, uint32_t generation)
{
  struct engine_space_info info = { 0 };

  (void)engine_space_find(w->engine, model_asked_name(w, entry->space), generation, &info);
  return info.n_items;
}

static bool lacks_index(const struct model_work *w, const struct model_entry *entry)
{
  return !engine_has_index(w->engine, model_asked_name(w, entry->space), entry->generation);
}

bool model_index_pays(const struct model_work *w, const struct model_entry *entry)
{
  uint64_t n_items = count_items(w, entry, entry->generation);

  return lacks_index(w, entry) && n_items > 0 && n_items >= count_items(w, entry, 0) / 2;
}

static void look_at(struct model_index *index, uint64_t n_items)
{
  index->is_due = n_items > 0 && n_items <= index->n_items + index->n_items / POURING_SHARE;
  index->n_items = n_items;
  index->look_due_ns = clock_now_ns() + LOOK_EVERY_MS * CLOCK_NS_PER_MS;
}

void model_index_look(struct model_work *w)
{
  for (size_t i = 0; i < w->entries.n; i++) {
    struct model_entry *entry = w->entries.v[i];
    if (entry->phase == MODEL_READY && clock_now_ns() >= entry->index.look_due_ns && lacks_index(w, entry))
      look_at(&entry->index, count_items(w, entry, entry->generation));
  }
}

struct model_entry *model_index_due(const struct model_work *w)
{
  for (size_t i = 0; i < w->entries.n; i++) {
    struct model_entry *entry = w->entries.v[i];
    bool is_due = entry->index.is_due || entry->generation == w->current[entry->space];
    if (entry->phase == MODEL_READY && is_due && lacks_index(w, entry))
      return entry;
  }
  return NULL;
}

err_t model_index_step(struct model_work *w, const struct model_entry *entry)
{
  if (!lacks_index(w, entry))
    return ERR_OK;
  TRY(engine_build_index(w->engine, model_asked_name(w, entry->space), entry->generation));
  if (!lacks_index(w, entry))
    log_info("model_indexed", "generation=%s items=%" PRIu64, entry->name, count_items(w, entry, entry->generation));
  return ERR_OK;
}
