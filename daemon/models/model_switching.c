/* SPDX-License-Identifier: Apache-2.0 */
/* The newest switch whose generation can answer counts. */
#include "daemon/models/model_switching.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/size.h"
#include "daemon/models/model_asked.h"
#include "daemon/models/model_index.h"
#include "engine/engine_spaces.h"

uint32_t model_switching_wanted(const struct model_work *w, size_t space)
{
  return model_state_at(w->state, model_asked_name(w, space), INT64_MAX);
}

bool model_switching_lacks_parts(const struct model_work *w)
{
  for (size_t i = 0; i < w->config->n_spaces; i++) {
    if (model_switching_wanted(w, i) != w->current[i] &&
        model_entries_find(&w->entries, i, w->current[i])->may_lack_parts)
      return true;
  }
  return false;
}

/* Searches without an index may be more than the machine can do. The current generation has one, or had. */
static bool can_answer(const struct model_work *w, size_t space, uint32_t generation)
{
  const struct model_entry *entry = model_entries_find(&w->entries, space, generation);

  return entry && entry->phase == MODEL_READY && model_is_asked_for(w, entry) &&
         (generation == w->current[space] || !model_index_is_lacking(w, entry));
}

/* Return the generation that answers from now on. */
static uint32_t choose(const struct model_work *w, size_t space)
{
  const struct model_space *said = model_state_find(w->state, model_asked_name(w, space));

  for (size_t i = said ? said->n_switches : 0; i-- > 0;) {
    if (can_answer(w, space, said->switches[i].to))
      return said->switches[i].to;
  }
  return can_answer(w, space, 1) ? 1 : w->current[space];
}

/* Say which generations were to answer since when: the newest ones. Before the first switch that was generation 1. */
static void note_history(struct model_work *w, size_t space)
{
  const struct model_space *said = model_state_find(w->state, model_asked_name(w, space));
  struct model_switch history[SWITCH_BOARD_ROWS] = { { .to = 1, .at_ms = INT64_MIN } };
  size_t n_switches = said ? said->n_switches : 0, n = n_switches < SWITCH_BOARD_ROWS;

  for (size_t i = n_switches - size_min(n_switches, SWITCH_BOARD_ROWS); i < n_switches; i++)
    history[n++] = said->switches[i];
  for (size_t i = 0; i < n; i++) {
    if (!can_answer(w, space, history[i].to))
      history[i].to = 0;
  }
  switch_board_set(w->switches, space, history, n);
}

static err_t switch_space(struct model_work *w, size_t space)
{
  uint32_t to = choose(w, space);

  if (w->switches)
    note_history(w, space); /* also of switches there and back */
  if (to == w->current[space])
    return ERR_OK;
  TRY(engine_set_current(w->engine, model_asked_name(w, space), to));
  log_info("model_switched", "space=%s from=%" PRIu32 " to=%" PRIu32, w->config->spaces[space].name, w->current[space],
           to);
  w->current[space] = to;
  return ERR_OK;
}

err_t model_switching_step(struct model_work *w)
{
  for (size_t i = 0; i < w->config->n_spaces; i++)
    TRY(switch_space(w, i));
  return ERR_OK;
}
