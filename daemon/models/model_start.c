/* SPDX-License-Identifier: Apache-2.0 */
/* The records that the store keeps say what was retired; the control topic itself is read later. */
#include "daemon/models/model_start.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/auto_close.h"
#include "base/log.h"
#include "base/sha256.h"
#include "daemon/models/model_path.h"
#include "daemon/models/model_rows.h"

/* Is the file there, with this digest? */
static bool has_digest(const char *path, const char *digest)
{
  AUTO(auto_close_file) FILE *in = fopen(path, "rbe");
  char found[SHA256_HEX_BYTES];

  return in && sha256_file(in, found) == ERR_OK && strcmp(found, digest) == 0;
}

/* Find the newest switch's generation that can be loaded, and its path. NULL: there is none. */
static const struct model_generation *find_loadable(const struct model_space *said, const char *store_path,
                                                    char path[PATH_MAX])
{
  for (size_t i = said->n_switches; i-- > 0;) {
    const struct model_generation *g = model_state_generation(said, said->switches[i].to);
    if (g && !g->is_retired && g->number > 1 && !model_state_lacks_root(said, g->number) &&
        model_path_get(store_path, g, path) == ERR_OK && has_digest(path, g->digest))
      return g;
  }
  return NULL;
}

static err_t choose(const struct model_state *state, const char *store_path, struct region *region,
                    struct engine_space *space)
{
  const struct span name = span_of_str(space->name);
  char path[PATH_MAX];
  struct span kept;

  if (!model_state_is_retired(state, name, 1))
    return ERR_OK;
  const struct model_generation *g = find_loadable(model_state_find(state, name), store_path, path);
  if (!g)
    return ERR_OK;
  TRY(region_copy(region, span_of_str(path), &kept));
  space->model_path = (const char *)kept.p;
  space->generation = g->number;
  space->parts_of = model_state_root(state, name, g->number);
  log_info("model_first", "space=%s generation=%" PRIu32 " note=\"the model of the configuration was retired\"",
           space->name, g->number);
  return ERR_OK;
}

err_t model_start_choose(const struct config *config, struct store *store, struct region *region,
                         struct engine_space *spaces)
{
  AUTO(model_state_fini) struct model_state state = { 0 };
  struct model_rows rows;

  if (!*config->models.topic)
    return ERR_OK;
  TRY(model_rows_read(store, region, &state, &rows));
  for (size_t i = 0; i < config->n_spaces; i++)
    TRY(choose(&state, config->store_path, region, &spaces[i]));
  return ERR_OK;
}
