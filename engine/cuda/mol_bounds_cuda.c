/* SPDX-License-Identifier: Apache-2.0 */
/* Half-precision bounds of Mixture-of-Logits scores on the device, for models that have them. A search scores only the
 * items whose bounds pass. */
#include "engine/cuda/mol_cuda.h"

static const struct mol_cuda_shared *shared_of(const struct funnel *f)
{
  return f->columns->shared;
}

bool mol_cuda_has_bounds(const struct funnel *f)
{
  return shared_of(f)->bound != NULL;
}

struct mol_bounds_input mol_cuda_bound_input(const struct funnel *f, const struct funnel_group *group)
{
  const struct mol_cuda_queries *queries = group->queries;

  return (struct mol_bounds_input){ .gate = shared_of(f)->bound,
                                    .present = f->columns->rows.present,
                                    .items = mol_cuda_halves(f->columns),
                                    .query_components = queries->components,
                                    .query_gates = queries->gates,
                                    .n_queries = group->n,
                                    .n_blocks = funnel_worker(f)->n_processors };
}

err_t mol_cuda_append_bounds(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors)
{
  struct mol_bounds_input input = mol_cuda_bound_input(f, group);

  return mol_bounds_append(funnel_worker(f)->stream, &input, range.first, range.n, floors, &group->lists);
}

err_t mol_cuda_score_lists(const struct funnel *f, const struct funnel_group *group)
{
  return mol_cuda_score(f, group, &group->lists);
}
