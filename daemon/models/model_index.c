/* SPDX-License-Identifier: Apache-2.0 */
/* Parts pour in as long as a generation grows much within a second: by more than a small share, or a number that is
 * inserted easily. */
#include "daemon/models/model_index.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "daemon/models/model_asked.h"
#include "engine/engine_spaces.h"

enum { LOOK_EVERY_MS = 1000, POURING_SHARE = 64, POURING_PARTS = 10000 };

/* A producer may pause for some seconds. */
enum { QUIET_S = 5 };

static uint64_t count_items(const struct model_work *w, const struct model_entry *entry, uint32_t generation)
{
  struct engine_space_info info = { 0 };

  (void)engine_space_find(w->engine, model_asked_name(w, entry->space), generation, &info);
  return info.n_items;
}

/* Does a generation have parts of nearly all items that the current one has, or of half of them? */
static bool has_all_parts(const struct model_work *w, const struct model_entry *entry)
{
  uint64_t n_items = count_items(w, entry, entry->generation), n = count_items(w, entry, 0);

  return n > 0 && n_items >= n - n / 1000;
}

static bool has_most_parts(const struct model_work *w, const struct model_entry *entry)
{
  uint64_t n_items = count_items(w, entry, entry->generation);

  return n_items > 0 && n_items >= count_items(w, entry, 0) / 2;
}

bool model_index_is_lacking(const struct model_work *w, const struct model_entry *entry)
{
  return entry->is_in_engine && engine_lacks_index(w->engine, model_asked_name(w, entry->space), entry->generation);
}

bool model_index_comes_first(const struct model_work *w, const struct model_entry *entry)
{
  return model_index_is_lacking(w, entry) && has_most_parts(w, entry);
}

static void look_at(const struct model_work *w, struct model_entry *entry)
{
  uint64_t n_items = count_items(w, entry, entry->generation);
  struct index_watch *watch = &entry->index;
  int64_t now_ns = clock_now_ns();

  if (!watch->poured_ns || n_items > watch->n_items + size_min(watch->n_items / POURING_SHARE, POURING_PARTS))
    watch->poured_ns = now_ns;
  bool is_quiet = now_ns - watch->poured_ns >= QUIET_S * CLOCK_NS_PER_S;
  watch->is_due = has_all_parts(w, entry) || (has_most_parts(w, entry) && is_quiet);
  watch->n_items = n_items;
  watch->look_due_ns = now_ns + LOOK_EVERY_MS * CLOCK_NS_PER_MS;
}

void model_index_look(struct model_work *w)
{
  for (size_t i = 0; i < w->entries.n; i++) {
    struct model_entry *entry = w->entries.v[i];
    if (entry->phase == MODEL_READY && clock_now_ns() >= entry->index.look_due_ns && model_index_is_lacking(w, entry))
      look_at(w, entry);
  }
}

/* Does the generation answer, or is its index all that it lacks to do so? */
static bool is_wanted(const struct model_work *w, const struct model_entry *entry)
{
  const struct model_space *said = model_state_find(w->state, model_asked_name(w, entry->space));

  for (size_t i = 0; said && i < said->n_switches; i++) {
    if (said->switches[i].to == entry->generation)
      return true;
  }
  return entry->generation == w->current[entry->space];
}

/* Return the first ready generation that lacks its index and is wanted, or due. */
static struct model_entry *find_lacking(const struct model_work *w, bool must_be_wanted)
{
  for (size_t i = 0; i < w->entries.n; i++) {
    struct model_entry *entry = w->entries.v[i];
    bool is_asked_for = must_be_wanted ? is_wanted(w, entry) : entry->index.is_due;
    if (entry->phase == MODEL_READY && is_asked_for && model_index_is_lacking(w, entry))
      return entry;
  }
  return NULL;
}

bool model_index_is_awaited(const struct model_work *w)
{
  return find_lacking(w, true) != NULL;
}

struct model_entry *model_index_due(const struct model_work *w)
{
  struct model_entry *wanted = find_lacking(w, true);

  return wanted ? wanted : find_lacking(w, false);
}

err_t model_index_step(struct model_work *w, const struct model_entry *entry)
{
  TRY(engine_build_index(w->engine, model_asked_name(w, entry->space), entry->generation));
  if (!model_index_is_lacking(w, entry))
    log_info("model_indexed", "generation=%s items=%" PRIu64, entry->name, count_items(w, entry, entry->generation));
  return ERR_OK;
}

err_t model_index_build_wanted(struct model_work *w)
{
  struct model_entry *entry;

  while ((entry = find_lacking(w, true)))
    TRY(model_index_step(w, entry));
  return ERR_OK;
}
