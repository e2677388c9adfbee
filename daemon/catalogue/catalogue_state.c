/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the state that the files of the catalogue thread share: phase, stop flag, item count, watermark. */
#include "daemon/catalogue/catalogue_state.h"

#include "base/log.h"

enum catalogue_phase catalogue_phase(const struct catalogue *c)
{
  return (enum catalogue_phase)atomic_load(&c->phase);
}

bool catalogue_is_serving(const struct catalogue *c)
{
  return atomic_load(&c->is_serving);
}

struct catalogue_report *catalogue_report_of(struct catalogue *c)
{
  return &c->report;
}

void catalogue_set_phase(struct catalogue *c, enum catalogue_phase phase, const char *problem)
{
  catalogue_report_problem(&c->report, problem ? problem : "");
  if (catalogue_phase(c) == phase)
    return;
  atomic_store(&c->phase, (int)phase);
  log_info("catalogue", "phase=%s", log_quote(span_of_str(catalogue_phase_name(phase))));
}

bool catalogue_is_stopping(const struct catalogue *c)
{
  return atomic_load(&c->is_stopping);
}

uint64_t catalogue_n_target_items(const struct catalogue *c)
{
  struct store_stats stats;

  store_stats(c->with.store, &stats);
  return store_is_rebuilding(c->with.store) ? stats.n_rebuilt_items : stats.n_items;
}

err_t catalogue_list_watermark(struct catalogue *c, struct position **out, size_t *n)
{
  *n = 0;
  TRY(region_array(&c->scratch, c->topic.positions.n, sizeof **out, out));
  for (size_t i = 0; i < c->topic.positions.n; i++) {
    const struct topic_position *p = &c->topic.positions.items[i];
    if (!p->is_waiting_for_room && !p->is_foreign)
      (*out)[(*n)++] = p->position.at;
  }
  return ERR_OK;
}
