/* SPDX-License-Identifier: Apache-2.0 */
/* One step is one transaction of the store, and one epoch if there are parts. Steps are short, because updates wait for
 * them. */
#include "daemon/models/model_fill.h"

#include "base/log.h"
#include "daemon/models/model_entries.h"
#include "engine/engine_spaces.h"

enum { SHORT_STEP_MS = 100, LONG_STEP_MS = 300 };

static void note_unusable(struct model_entry *entry, const struct item_change *item)
{
  if (entry->n_unusable == 0)
    log_warn("stored_part_unusable", "key=%s reason=%s note=\"it is not served until the item is sent again\"",
             log_quote(item->key), log_failure());
  model_entry_note_unusable(entry, item->key);
}

static struct span space_of(const struct model_entry *entry)
{
  struct space_name name;

  space_name_parse(span_of_str(entry->name), &name);
  return name.space;
}

/* Reduce an item to the entry's part. Returns false if it has none that can be used. */
static bool keep_part(struct model_entry *entry, const struct engine *engine, struct item_change *item)
{
  for (size_t i = 0; i < item->n_parts; i++) {
    if (!span_equal(item->parts[i].space, span_of_str(entry->part_name)))
      continue;
    if (engine_check_fill(engine, space_of(entry), entry->generation, &item->parts[i]) != ERR_OK) {
      note_unusable(entry, item);
      return false;
    }
    item->parts += i;
    item->n_parts = 1;
    item->n_attributes = 0;
    item->is_whole = false;
    return true;
  }
  return false;
}

err_t model_fill_step(struct model_entry *entry, struct engine *engine, struct store *store, size_t max,
                      struct region *region)
{
  struct item_change *changes;
  size_t n, n_kept = 0;

  region_reset(region);
  TRY(store_walk_read(store, &entry->walk, max, region, &changes, &n));
  for (size_t i = 0; i < n; i++) {
    if (keep_part(entry, engine, &changes[i]))
      changes[n_kept++] = changes[i];
  }
  entry->n_walked += n;
  entry->n_filled += n_kept;
  return n_kept ? engine_fill_space(engine, space_of(entry), entry->generation, changes, n_kept) : ERR_OK;
}

size_t model_fill_pace(size_t n, size_t max, int64_t took_ms)
{
  if (took_ms < SHORT_STEP_MS)
    return n < max / 2 ? 2 * n : max;
  return took_ms > LONG_STEP_MS && n >= 2 * FILL_ITEMS_MIN ? n / 2 : n;
}

err_t model_fill_remove_step(struct model_entry *entry, struct store *store, size_t max)
{
  size_t n, n_removed;

  TRY(store_walk_remove(store, &entry->walk, max, span_of_str(entry->name), &n, &n_removed));
  entry->n_walked += n;
  entry->n_filled += n_removed;
  return ERR_OK;
}
