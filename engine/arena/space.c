/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a space: its model file, the similarity that the file names, and the model. */
#include "engine/arena/space.h"

#include <stdio.h>

#include "base/log.h"
#include "base/space_name.h"
#include "engine/engine_config.h"

/* Add the dimension from the configuration, for models whose file has none. */
static err_t supply_dim(struct safetensors *file, size_t dim)
{
  char text[24];

  if (dim == 0)
    return ERR_OK;
  snprintf(text, sizeof text, "%zu", dim);
  return safetensors_supply(file, "sluice.dim", text);
}

static err_t open_file(const struct engine_space *config, struct safetensors **file, const struct similarity **out)
{
  TRY(safetensors_open(config->model_path, file));
  TRY(supply_dim(*file, config->dim));
  TRY(similarity_of(*file, out));
  if (!config->has_no_cells)
    return ERR_OK;
  if ((*out)->kind != SIMILARITY_RECJPQ)
    FAIL(ERR_MODEL, "%s is a %s model: only recjpq spaces have cells to leave out", config->model_path, (*out)->name);
  return safetensors_supply(*file, "sluice.cells", "off");
}

static err_t init_names(const struct engine_space *config, struct space *out)
{
  const struct space_name name = { span_of_str(config->name), config->generation > 0 ? config->generation : 1 };
  const struct space_name plain = { .space = name.space },
                          part = { name.space, config->parts_of > 0 ? config->parts_of : name.generation };

  *out = (struct space){ .generation = name.generation };
  if (!space_name_print(&plain, out->name) || !space_name_print(&part, out->part_name))
    FAIL(ERR_MODEL, "generation %u of space %s: the name would have more than %d bytes", name.generation,
         log_quote(name.space), SPACE_NAME_MAX);
  return ERR_OK;
}

err_t space_init(const struct engine_space *config, struct space *out)
{
  AUTO(safetensors_close) struct safetensors *file = NULL;

  TRY(init_names(config, out));
  TRY(open_file(config, &file, &out->similarity));
  TRY(sha256_hex(safetensors_bytes(file), out->digest));
  return out->similarity->model_open(file, &out->model);
}

err_t space_check(const struct engine_space *config, struct space *out)
{
  AUTO(safetensors_close) struct safetensors *file = NULL;

  TRY(init_names(config, out));
  TRY(open_file(config, &file, &out->similarity));
  if (out->similarity->model_check)
    return out->similarity->model_check(file, &out->model);
  return out->similarity->model_open(file, &out->model);
}

void space_fini(struct space *s)
{
  if (s->model)
    s->similarity->model_close(&s->model);
}
