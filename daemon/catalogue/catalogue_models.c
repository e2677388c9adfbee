/* SPDX-License-Identifier: Apache-2.0 */
/* Generations of models, from the point of view of the catalogue: when their steps are taken. */
#include "daemon/catalogue/catalogue_state.h"

#include "base/clock.h"

enum { STEP_MS = 20 };

/* The models are there before the items: so the store is loaded once, with all generations, and no query is answered by
 * a generation that was switched away from while the daemon was down. */
err_t catalogue_await_models(struct catalogue *c)
{
  bool is_busy;

  while (c->models && !catalogue_is_stopping(c)) {
    pulse_beat();
    TRY(models_step(c->models, false, &is_busy));
    if (models_have_caught_up(c->models) && !models_are_loading(c->models))
      return ERR_OK;
    clock_sleep_ns(STEP_MS * CLOCK_NS_PER_MS);
  }
  if (c->models)
    FAIL(ERR_STOPPING, "the daemon is stopping: the topic of models was not read");
  return ERR_OK;
}

err_t catalogue_step_models(struct catalogue *c)
{
  return c->models ? models_step(c->models, !c->is_filling, &c->has_model_work) : ERR_OK;
}
