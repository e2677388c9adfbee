/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a configuration without opening an engine: finds everything that engine_open() would refuse. */
#include "base/mem.h"
#include "engine/engine_state.h"

static err_t note(engine_problem problem, void *context, err_code_t err, enum engine_fault fault, size_t space)
{
  return err == ERR_OK ? ERR_OK : problem(context, err, fault, space);
}

/* Load every space. Loaded spaces are kept, so that their memory is counted. */
static err_t check_spaces(const struct engine_config *config, struct engine *e, engine_problem problem, void *context)
{
  struct space *space;

  TRY(space_table_init(config->n_spaces, &e->spaces));
  for (size_t i = 0; i < config->n_spaces; i++) {
    if (!config->spaces[i].model_path)
      continue;
    TRY(mem_array(1, sizeof *space, &space));
    err_code_t err = space_check(&config->spaces[i], space);
    if (err == ERR_OK && space->model) {
      space_table_put(&e->spaces, space_table_room(&e->spaces), space, true);
    } else {
      space_fini(space);
      mem_free(&space);
    }
    TRY(note(problem, context, err, ENGINE_FAULT_SPACE, i));
  }
  return ERR_OK;
}

err_t engine_check(const struct engine_config *config, engine_problem problem, void *context)
{
  AUTO(engine_close) struct engine *e = NULL;

  TRY(mem_array(1, sizeof *e, &e));
  e->max_items = config->max_items;
  e->n_workers = config->n_workers > 0 ? config->n_workers : 1;
  TRY(note(problem, context, backends_choose(config->backend, &e->backends), ENGINE_FAULT_BACKEND, 0));
  TRY(note(problem, context, kernels_get(config->isa, &e->kernels), ENGINE_FAULT_ISA, 0));
  TRY(check_spaces(config, e, problem, context));
  TRY(attributes_copy(&config->attributes, &e->attributes));
  TRY(note(problem, context, engine_plan_lifetimes(config, e), ENGINE_FAULT_LIFETIMES, 0));
  return note(problem, context, engine_verify_memory(e, true), ENGINE_FAULT_MAX_ITEMS, 0);
}
