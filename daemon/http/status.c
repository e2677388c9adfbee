/* SPDX-License-Identifier: Apache-2.0 */
/* What is noted about the daemon's state over time, and the line that `systemctl status` shows. */
#include "daemon/http/status.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/http/sections/catalogue_status.h"

enum { WINDOW_S = 60 };

static void note_epoch(struct status *s)
{
  struct engine_epoch epoch;

  engine_epoch_get(s->engine, &epoch, NULL, 0);
  if (epoch.number == s->epoch && atomic_load(&s->epoch_since_ns))
    return;
  s->epoch = epoch.number;
  atomic_store(&s->epoch_since_ns, clock_now_ns());
}

int64_t status_epoch_age_ns(const struct status *s)
{
  int64_t since_ns = atomic_load(&s->epoch_since_ns);

  return since_ns ? clock_now_ns() - since_ns : 0;
}

void status_step(struct status *s)
{
  note_epoch(s);
  if (history_is_due(&s->history))
    history_add(&s->history, s->counters, catalogue_status_lag(catalogue_report_of(s->catalogue)));
  if (clock_now_ns() < s->windows_due_ns)
    return;
  if (s->windows_due_ns) {
#define COUNTERS_TURN(field, name, prometheus, help) hist_window_turn(&s->windows.field, &s->counters->field);
    COUNTERS_HISTS(COUNTERS_TURN)
#undef COUNTERS_TURN
  }
  s->windows_due_ns = clock_now_ns() + WINDOW_S * CLOCK_NS_PER_S;
}

void status_line(struct status *s, char *text, size_t n)
{
  struct engine_epoch epoch;
  const char *not_ready = readiness_reason(s->readiness);

  engine_epoch_get(s->engine, &epoch, NULL, 0);
  snprintf(text, n, "%s%s; %" PRIu64 " items, epoch %" PRIu64 ", %" PRIu64 " queries answered",
           not_ready ? "not ready: " : "ready", not_ready ? not_ready : "", epoch.n_items, epoch.number,
           counters_get(&s->counters->answers));
}
