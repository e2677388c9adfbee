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
  return c->models ? models_step(c->models, !c->first_fill.is_under_way, &c->has_model_work) : ERR_OK;
}

/* Wait a little, or not at all while there is more to do. */
static err_t step_and_wait(struct catalogue *c, int64_t left_ns)
{
  int64_t left_ms = left_ns / CLOCK_NS_PER_MS + 1;

  pulse_beat();
  TRY(catalogue_step_models(c));
  return c->has_model_work ? catalogue_pass_time(c) : catalogue_wait(c, left_ms < STEP_MS ? (int)left_ms : STEP_MS);
}

err_t catalogue_wait_to_reopen(struct catalogue *c, int wait_ms)
{
  int64_t end_ns = clock_now_ns() + wait_ms * CLOCK_NS_PER_MS, now_ns;
  bool was_outdated = topic_reader_is_outdated(c->topic.reader); /* by certificates that cannot be used yet */

  while ((now_ns = clock_now_ns()) < end_ns && !catalogue_is_stopping(c) &&
         topic_reader_is_outdated(c->topic.reader) == was_outdated)
    TRY(step_and_wait(c, end_ns - now_ns));
  return ERR_OK;
}
