/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up what the state says about the generations of the configuration. */
#include "daemon/models/model_asked.h"

struct span model_asked_name(const struct model_work *w, size_t space)
{
  return span_of_str(w->config->spaces[space].name);
}

size_t model_asked_space(const struct model_work *w, struct span name)
{
  size_t i = 0;

  while (i < w->config->n_spaces && !span_equal(model_asked_name(w, i), name))
    i++;
  return i;
}

const struct model_generation *model_asked_of(const struct model_work *w, const struct model_entry *entry)
{
  return model_state_generation(model_state_find(w->state, model_asked_name(w, entry->space)), entry->generation);
}

bool model_is_asked_for(const struct model_work *w, const struct model_entry *entry)
{
  const struct model_generation *asked = model_asked_of(w, entry);

  return asked ? !asked->is_retired : entry->generation == 1;
}
