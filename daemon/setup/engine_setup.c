/* SPDX-License-Identifier: Apache-2.0 */
/* Make the engine's configuration from the daemon's: the start and --check-config use the same one. */
#include "daemon/setup/engine_setup.h"

#include <stdio.h>

#include "base/cores.h"

/* The shadow thread has a searcher, too. */
static size_t n_searchers(const struct config *config)
{
  size_t n_workers = config->query.workers > 0 ? config->query.workers : 1;

  return n_workers + (*config->models.topic != '\0');
}

void engine_setup_make(const struct config *config, struct engine_space *spaces, struct engine_config *out)
{
  for (size_t i = 0; i < config->n_spaces; i++)
    spaces[i] = (struct engine_space){
      .name = config->spaces[i].name,
      .model_path = config->spaces[i].model_path,
      .dim = config->spaces[i].dim,
      .has_no_cells = !config->spaces[i].has_cells,
    };
  *out = (struct engine_config){
    .spaces = spaces,
    .n_spaces = config->n_spaces,
    .max_items = config->catalogue.max_items,
    .max_k = config->query.max_k,
    .max_batch = config->query.batch_size,
    .isa = config->isa == N_ISAS ? isa_detect() : config->isa,
    .backend = config->backend,
    .n_workers = n_searchers(config),
    .attributes = config->attributes,
    .lifetimes = { .not_before = config->catalogue.not_before, .expires = config->catalogue.expires },
  };
}

err_t engine_setup_blame(const struct config *config, err_code_t err, enum engine_fault fault, size_t space)
{
  static const char *const settings[] = {
    [ENGINE_FAULT_BACKEND] = "engine.backend",
    [ENGINE_FAULT_ISA] = "kernels.isa",
    [ENGINE_FAULT_MAX_ITEMS] = "catalogue.max_items",
    [ENGINE_FAULT_LIFETIMES] = "catalogue.expires",
  };

  return fault == ENGINE_FAULT_SPACE ? config_blame_space(config, space, err)
                                     : config_blame(config, settings[fault], err);
}

static err_code_t blame_first(void *config, err_code_t err, enum engine_fault fault, size_t space)
{
  return engine_setup_blame(config, err, fault, space);
}

/* The check finds again what engine_open() has refused, and where. If it does not, the files have changed since. */
err_t engine_setup_open(const struct config *config, const struct engine_config *engine_config, struct engine **out)
{
  char reason[1024];
  err_code_t err = engine_open(engine_config, out);

  if (err == ERR_OK || err == ERR_MEMORY)
    return err;
  snprintf(reason, sizeof reason, "%s", err_message());
  TRY(engine_check(engine_config, blame_first, (void *)(uintptr_t)config));
  FAIL(err, "%s: %s", config->path, reason);
}

err_t engine_setup_share(const struct config *config, struct engine *e)
{
  size_t n = cores_available();
  struct engine_threads threads = {
    .per_search = config->query.threads_per_search ? config->query.threads_per_search : n,
    .max = n,
  };

  return engine_share_searches(e, &threads);
}

/* On a GPU, searches of two workers take turns, and each worker has memory there. */
size_t engine_setup_n_workers(const struct config *config, const struct engine *e)
{
  enum { WORKERS_MAX = 256 };
  size_t n = cores_available(), n_failed;

  if (config->query.workers)
    return config->query.workers;
  if (strcmp(engine_backend_name(e, &n_failed), "cuda") == 0)
    return 1;
  return n < WORKERS_MAX ? n : WORKERS_MAX;
}
