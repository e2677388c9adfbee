/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing each generation that the state names with the entry of it. */
#include "daemon/models/model_follow.h"

#include <limits.h>
#include <stdio.h>

#include "base/mem.h"
#include "daemon/models/model_asked.h"
#include "daemon/models/model_path.h"

/* Find out where the file is, or will be. */
static err_t set_path(const struct model_work *w, struct model_entry *entry, const struct model_generation *asked)
{
  char path[PATH_MAX];

  TRY(model_path_get(w->config->store_path, asked, path));
  mem_free(&entry->path);
  return mem_copy_str(path, &entry->path);
}

err_t model_follow_set_file(const struct model_work *w, struct model_entry *entry, const struct model_generation *asked)
{
  const struct span name = model_asked_name(w, entry->space);

  TRY(set_path(w, entry, asked));
  snprintf(entry->digest, sizeof entry->digest, "%s", asked->digest);
  entry->is_in_topic = asked->is_in_topic;
  entry->n_bytes = asked->n_bytes;
  model_entry_set_root(entry, model_state_root(w->state, name, asked->number));
  entry->lacks_root = model_state_lacks_root(model_state_find(w->state, name), asked->number);
  model_entry_reset(entry);
  entry->is_clean = false;
  return ERR_OK;
}

bool model_follow_has_root(const struct model_work *w, const struct model_entry *entry)
{
  const struct span name = model_asked_name(w, entry->space);

  return entry->root == model_state_root(w->state, name, entry->generation) &&
         entry->lacks_root == model_state_lacks_root(model_state_find(w->state, name), entry->generation);
}

/* Is it the file that the entry has, or is loading? A generation that was retired has none. */
static bool has_file(const struct model_entry *entry, const struct model_generation *asked)
{
  bool was_retired = entry->phase == MODEL_KEPT || entry->phase == MODEL_REMOVING || entry->phase == MODEL_REMOVED;
  bool has_source = entry->path && entry->is_in_topic == asked->is_in_topic && entry->n_bytes == asked->n_bytes &&
                    (asked->is_in_topic || strcmp(entry->path, asked->path) == 0);

  return !was_retired && has_source && strcmp(entry->digest, asked->digest) == 0;
}

/* Another record of this generation: load what it says. A model that is loaded stays, because its parts were made for
 * it. */
static err_t change_file(struct model_work *w, struct model_entry *entry, const struct model_generation *asked)
{
  if (entry->is_in_engine) {
    model_entry_note_asked(entry, asked->digest, model_follow_has_root(w, entry));
    return ERR_OK;
  }
  if (has_file(entry, asked) && model_follow_has_root(w, entry))
    return ERR_OK;
  if (model_loading_is_of(&w->loading, entry))
    return ERR_OK; /* looked at again when loading has ended */
  if (model_fetching_is_of(&w->fetching, entry)) {
    model_fetching_cancel(&w->fetching);
    return ERR_OK; /* the same */
  }
  TRY(model_follow_set_file(w, entry, asked));
  model_entry_enter(entry, MODEL_WAITING);
  model_work_sweep_soon(w);
  return ERR_OK;
}

static err_t follow_generation(struct model_work *w, size_t space, const struct model_generation *asked)
{
  if (asked->is_retired && w->n_followed == w->state->n_applied)
    return ERR_OK; /* it is there already. All that were ever retired stay in the list */
  struct model_entry *entry = model_entries_find(&w->entries, space, asked->number);
  if (!entry)
    TRY(model_entries_add(&w->entries, space, model_asked_name(w, space), asked->number, &entry));
  return asked->is_retired ? ERR_OK : change_file(w, entry, asked);
}

err_t model_follow_state(struct model_work *w)
{
  for (size_t i = 0; i < w->state->n; i++) {
    const struct model_space *said = &w->state->spaces[i];
    size_t space = model_asked_space(w, span_of_str(said->name));
    for (size_t g = 0; space < w->config->n_spaces && g < said->n_generations; g++)
      TRY(follow_generation(w, space, &said->generations[g]));
  }
  return ERR_OK;
}
