/* SPDX-License-Identifier: Apache-2.0 */
/* A generation leaves the engine first, then the store, unless another one uses its parts. */
#include "daemon/models/model_leave.h"

#include "daemon/models/model_asked.h"
#include "engine/engine_spaces.h"

static err_t leave_engine(struct model_work *w, const struct model_entry *entry)
{
  stand_back_enter(w->stand_back);
  err_code_t err = engine_remove_space(w->engine, model_asked_name(w, entry->space), entry->generation);
  stand_back_leave(w->stand_back);
  return err;
}

/* There is more memory now: what did not fit may fit. */
static void retry_failed(struct model_work *w)
{
  for (size_t i = 0; i < w->entries.n; i++)
    w->entries.v[i]->file_time = -1;
}

/* Does a generation use the parts of this one? A retired one may have to go on answering with them. */
static bool are_parts_used(const struct model_work *w, const struct model_entry *root)
{
  for (size_t i = 0; i < w->entries.n; i++) {
    const struct model_entry *entry = w->entries.v[i];
    if (entry->is_in_engine && entry->space == root->space && entry->root == root->generation)
      return true;
  }
  return model_state_uses_parts(w->state, model_asked_name(w, root->space), root->generation);
}

/* A retired generation leaves the store, too, once no other one uses its parts. */
static void retire(struct model_work *w, struct model_entry *entry)
{
  bool is_used = are_parts_used(w, entry);
  enum model_phase next = is_used ? MODEL_KEPT : entry->is_clean ? MODEL_REMOVED : MODEL_REMOVING;

  entry->is_clean &= !is_used;
  if (entry->phase == next || (entry->phase == MODEL_REMOVED && !is_used))
    return;
  model_entry_reset(entry);
  model_entry_enter(entry, next);
  model_work_sweep_soon(w);
}

/* A generation that nobody asks for any more leaves the engine, unless it has to answer. One whose record was deleted
 * keeps its parts in the store, as those of any unknown space. */
static err_t leave(struct model_work *w, size_t i)
{
  struct model_entry *entry = w->entries.v[i];
  bool is_retired = model_state_is_retired(w->state, model_asked_name(w, entry->space), entry->generation);

  if (entry->is_in_engine) {
    TRY(leave_engine(w, entry));
    model_entry_reset(entry);
    entry->is_in_engine = false;
    entry->phase = MODEL_WAITING;
    retry_failed(w);
  }
  if (is_retired) {
    retire(w, entry);
  } else if (entry->phase != MODEL_REMOVED) {
    model_entries_drop(&w->entries, i);
    model_work_sweep_soon(w);
  }
  return ERR_OK;
}

static bool must_stay(const struct model_work *w, const struct model_entry *entry)
{
  return model_is_asked_for(w, entry) || model_loading_is_of(&w->loading, entry) ||
         (entry->is_in_engine && w->current[entry->space] == entry->generation);
}

err_t model_leave_behind(struct model_work *w)
{
  for (size_t i = w->entries.n; i-- > 0;) {
    struct model_entry *entry = w->entries.v[i];
    if (entry->phase == MODEL_REMOVED && w->n_followed == w->state->n_applied)
      continue; /* nobody has asked for it again */
    if (model_is_asked_for(w, entry))
      entry->is_clean = entry->may_lack_parts = false; /* it gets parts again */
    else if (model_fetching_is_of(&w->fetching, entry))
      model_fetching_cancel(&w->fetching);
    else if (!must_stay(w, entry))
      TRY(leave(w, i));
  }
  return ERR_OK;
}
