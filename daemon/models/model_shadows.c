/* SPDX-License-Identifier: Apache-2.0 */
/* From what the control topic asks for, and how far each generation is, to the board. */
#include "daemon/models/model_shadows.h"

#include <stdio.h>

/* Write why a generation cannot be compared now; "" if it can. */
static void print_problem(const struct model_work *w, const struct model_entry *entry,
                          char problem[SHADOW_PROBLEM_BYTES])
{
  *problem = '\0';
  if (w->current[entry->space] == entry->generation)
    snprintf(problem, SHADOW_PROBLEM_BYTES, "it is the current generation: there is nothing to compare it with");
  else if (entry->phase == MODEL_FAILED)
    snprintf(problem, SHADOW_PROBLEM_BYTES, "it is failed: %s", entry->problem);
  else if (entry->phase != MODEL_READY)
    snprintf(problem, SHADOW_PROBLEM_BYTES, "it is not ready: %s", model_phase_word(entry->phase));
}

static err_t list(const struct model_work *w, const struct model_entry *entry, struct shadow_board *board)
{
  const char *space = w->config->spaces[entry->space].name;
  const struct model_generation *asked =
      model_state_generation(model_state_find(w->state, span_of_str(space)), entry->generation);
  char problem[SHADOW_PROBLEM_BYTES];

  if (!asked || asked->is_retired)
    return ERR_OK;
  print_problem(w, entry, problem);
  return shadow_board_list(board, entry->space, entry->generation, asked->shadow, problem);
}

err_t model_shadows_list(const struct model_work *work, struct shadow_board *board)
{
  err_code_t err = ERR_OK;

  shadow_board_begin(board);
  for (size_t i = 0; i < work->entries.n && err == ERR_OK; i++)
    err = list(work, work->entries.v[i], board);
  shadow_board_end(board);
  return err;
}
