/* SPDX-License-Identifier: Apache-2.0 */
/* Passing time: an epoch is published when an item expires or comes out of its embargo. No record is needed for it, so
 * whatever the thread waits for, it waits in steps. */
#include "daemon/catalogue/catalogue_state.h"

#include "base/clock.h"

static int64_t smaller(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Return after how many milliseconds time is to be passed: 0 if it is now. */
static int64_t due_in_ms(const struct catalogue *c)
{
  int64_t change_ms = engine_next_change_ms(c->with.engine);
  int64_t pause_ms = (c->time_due_ns - clock_now_ns() + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
  int64_t until_ms = change_ms == INT64_MAX ? INT64_MAX : change_ms - clock_unix_ms();
  int64_t later_ms = until_ms > pause_ms ? until_ms : pause_ms;

  return later_ms > 0 ? later_ms : 0;
}

int catalogue_ms_until_change(const struct catalogue *c, int most_ms)
{
  return (int)smaller(due_in_ms(c), most_ms);
}

err_t catalogue_pass_time(struct catalogue *c)
{
  if (due_in_ms(c) > 0)
    return ERR_OK;
  c->time_due_ns =
      clock_now_ns() + (int64_t)config_number(&c->with.config->catalogue.publish_interval_ms) * CLOCK_NS_PER_MS;
  return engine_pass_time(c->with.engine);
}

static err_t wait_a_step(struct catalogue *c, int64_t left_ns)
{
  enum { STEP_MS = 50 };

  TRY(catalogue_pass_time(c));
  clock_sleep_ns(smaller(catalogue_ms_until_change(c, STEP_MS) * CLOCK_NS_PER_MS, left_ns));
  return ERR_OK;
}

err_t catalogue_wait(struct catalogue *c, int wait_ms)
{
  int64_t end_ns = clock_now_ns() + wait_ms * CLOCK_NS_PER_MS, now_ns;

  while ((now_ns = clock_now_ns()) < end_ns && !catalogue_is_stopping(c))
    TRY(wait_a_step(c, end_ns - now_ns));
  return ERR_OK;
}
