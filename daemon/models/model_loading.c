/* SPDX-License-Identifier: Apache-2.0 */
/* The errand that loads a file, and the check of its digest. */
#include "daemon/models/model_loading.h"

#include <stdio.h>

static err_t load(struct model_loading *l)
{
  AUTO(engine_model_close) struct engine_model *model = NULL;

  err_code_t err = engine_load_model(&l->space, &model);
  if (err == ERR_MEMORY) /* the daemon and its other models go on */
    FAIL(ERR_FULL, "%s does not fit into memory: %s", l->path, err_message());
  TRY(err);
  if (strcmp(engine_model_digest(model), l->digest) != 0)
    FAIL(ERR_MODEL,
         "%s has the SHA-256 %s, but the control topic says %s: deploy the right file, or add the right digest",
         l->path, engine_model_digest(model), l->digest);
  l->model = model;
  model = NULL;
  return ERR_OK;
}

static err_code_t run(void *context)
{
  struct model_loading *l = context;
  err_code_t err = load(l);

  atomic_store(&l->is_done, true);
  return err;
}

void model_loading_begin(struct model_loading *l, const struct engine_space *space, const char *path,
                         const char *digest)
{
  l->space = *space;
  l->space.model_path = l->path;
  l->model = NULL;
  snprintf(l->path, sizeof l->path, "%s", path);
  snprintf(l->digest, sizeof l->digest, "%s", digest);
  atomic_store(&l->is_done, false);
  l->is_under_way = true;
  l->has_thread = errand_begin(run, l, &l->errand);
  if (!l->has_thread)
    err_keep(run(l), &l->errand.failure);
}

static void wait_for_end(struct model_loading *l)
{
  if (l->has_thread)
    errand_join(&l->errand);
  l->has_thread = false;
  l->is_under_way = false;
}

err_t model_loading_end(struct model_loading *l, bool *is_done, struct engine_model **out)
{
  *is_done = atomic_load(&l->is_done);
  if (!*is_done)
    return ERR_OK;
  wait_for_end(l);
  TRY(err_give_back(&l->errand.failure));
  *out = l->model;
  l->model = NULL;
  return ERR_OK;
}

void model_loading_drop(struct model_loading *l)
{
  if (l->is_under_way)
    wait_for_end(l);
  engine_model_close(&l->model);
}
