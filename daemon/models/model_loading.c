/* SPDX-License-Identifier: Apache-2.0 */
/* The errand that loads a file, and the check of its digest. All that it touches is its own, so that it can be left
 * behind. */
#include "daemon/models/model_loading.h"

#include <stdio.h>

#include "base/stand_back.h"
#include "base/errand.h"
#include "base/mem.h"

/* How long a stop waits for a model that is being loaded. */
enum { DROP_WAIT_MS = 1000 };

struct model_load {
  bool has_thread;
  bool is_behind_searches;
  struct engine_space space; /* its texts are in the fields below */
  char name[SPACE_NAME_MAX + 1];
  char path[MODEL_PATH_MAX + 1];
  char digest[MODEL_DIGEST_CHARS + 1]; /* that the file must have */
  struct engine_model *model;
  struct errand errand;
};

static err_code_t load(void *context)
{
  struct model_load *l = context;
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

/* The catalogue thread shows by itself that it makes progress, and this thread may outlive it. Searches come first: to
 * decompose a large model takes minutes. */
static err_code_t run_apart(void *context)
{
  const struct model_load *l = context;

  if (l->is_behind_searches)
    stand_back_for_good();
  progress_listener_set((struct progress_listener){ 0 });
  return load(context);
}

static err_t make_load(const struct engine_space *space, const char *path, const char *digest, struct model_load **out)
{
  struct model_load *l;

  TRY(mem_array(1, sizeof *l, &l));
  snprintf(l->name, sizeof l->name, "%s", space->name);
  snprintf(l->path, sizeof l->path, "%s", path);
  snprintf(l->digest, sizeof l->digest, "%s", digest);
  l->space = *space;
  l->space.name = l->name;
  l->space.model_path = l->path;
  *out = l;
  return ERR_OK;
}

static void close_load(void *load)
{
  struct model_load *l = load;

  engine_model_close(&l->model);
  mem_free(&l);
}

err_t model_loading_begin(struct model_loading *l, const struct engine_space *space, struct model_entry *entry,
                          bool are_there_searches)
{
  TRY(make_load(space, entry->path, entry->digest, &l->load));
  l->entry = entry;
  l->load->is_behind_searches = are_there_searches;
  l->is_under_way = true;
  l->load->has_thread = errand_begin("load_model", run_apart, l->load, &l->load->errand);
  if (!l->load->has_thread)
    err_keep(load(l->load), &l->load->errand.failure);
  return ERR_OK;
}

bool model_loading_is_of(const struct model_loading *l, const struct model_entry *entry)
{
  return l->is_under_way && l->entry == entry;
}

static struct model_load *take(struct model_loading *l)
{
  struct model_load *load = l->load;

  *l = (struct model_loading){ 0 };
  return load;
}

err_t model_loading_end(struct model_loading *l, bool *is_done, struct engine_model **out)
{
  *is_done = !l->load->has_thread || errand_is_over(&l->load->errand);
  if (!*is_done)
    return ERR_OK;
  struct model_load *load = take(l);
  if (load->has_thread)
    errand_join(&load->errand);
  err_code_t err = err_give_back(&load->errand.failure);
  if (err == ERR_OK) {
    *out = load->model;
    load->model = NULL;
  }
  close_load(load);
  return err;
}

void model_loading_drop(struct model_loading *l)
{
  if (!l->is_under_way)
    return;
  struct model_load *load = take(l);
  if (!load->has_thread)
    close_load(load);
  else
    errand_drop(&load->errand, DROP_WAIT_MS, close_load);
}
