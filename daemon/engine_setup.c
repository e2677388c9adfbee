/* SPDX-License-Identifier: Apache-2.0 */
/* Make the engine's configuration from the daemon's: the start and --check-config use the same one. */
#include "daemon/engine_setup.h"

void engine_setup_make(const struct config *config, struct engine_space *spaces, struct engine_config *out)
{
  for (size_t i = 0; i < config->n_spaces; i++)
    spaces[i] = (struct engine_space){ config->spaces[i].name, config->spaces[i].model_path, config->spaces[i].dim };
  *out = (struct engine_config){
    .spaces = spaces,
    .n_spaces = config->n_spaces,
    .max_items = config->catalogue.max_items,
    .max_k = config->query.max_k,
    .max_batch = config->query.batch_size,
    .isa = config->is_isa_auto ? isa_detect() : config->isa,
    .backend = config->backend,
    .n_workers = config->query.workers,
  };
}
