/* SPDX-License-Identifier: Apache-2.0 */
/* The steps, and one file at a time that is loaded. What they are made of is in files of their own: model_follow.c,
 * model_fetching.c, model_loading.c, model_walks.c, model_index.c, model_switching.c, model_leave.c. */
#include "daemon/models/model_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/models/model_asked.h"
#include "daemon/models/model_follow.h"
#include "daemon/models/model_index.h"
#include "daemon/models/model_leave.h"
#include "daemon/models/model_switching.h"
#include "daemon/models/model_walks.h"
#include "store/models/model_files.h"

enum { LOOK_EVERY_MS = 1000 };

/* ---- Opening and closing ---- */

/* Add the generation with which the engine was opened (model_start.h). */
static err_t add_first(struct model_work *w, size_t space)
{
  const struct span name = model_asked_name(w, space);
  struct engine_space_info info = { .generation = 1 };
  struct model_entry *entry;

  (void)engine_space_get(w->engine, space, &info);
  TRY(model_entries_add(&w->entries, space, name, info.generation, &entry));
  if (info.generation > 1) {
    const struct model_generation *asked = model_state_generation(model_state_find(w->state, name), info.generation);
    TRY(model_follow_set_file(w, entry, asked));
    snprintf(entry->digest, sizeof entry->digest, "%s", info.digest);
  }
  w->current[space] = info.generation;
  entry->may_lack_parts = model_state_is_retired(w->state, name, info.generation);
  entry->phase = MODEL_READY;
  entry->is_in_engine = true;
  return ERR_OK;
}

err_t model_work_init(const struct config *config, struct engine *engine, struct store *store,
                      const struct model_state *state, struct model_work *out)
{
  *out = (struct model_work){
    .config = config, .engine = engine, .store = store, .state = state, .n_followed = UINT64_MAX
  };
  TRY(mem_array(config->n_spaces, sizeof *out->current, &out->current));
  for (size_t i = 0; i < config->n_spaces; i++)
    TRY(add_first(out, i));
  return ERR_OK;
}

void model_work_fetch_from(struct model_work *w, const struct kafka_layers *layers)
{
  model_fetching_init(w->config, layers, &w->fetching);
  w->must_sweep = true; /* a process before this one may have left some behind */
}

void model_work_fini(struct model_work *w)
{
  model_fetching_drop(&w->fetching);
  model_loading_drop(&w->loading);
  model_entries_fini(&w->entries);
  mem_free(&w->current);
  region_fini(&w->region);
}

err_t model_work_note_removed(struct model_work *w, struct span space, uint32_t generation)
{
  size_t i = model_asked_space(w, space);
  struct model_entry *entry;

  if (i == w->config->n_spaces)
    return ERR_OK;
  entry = model_entries_find(&w->entries, i, generation);
  if (!entry)
    TRY(model_entries_add(&w->entries, i, model_asked_name(w, i), generation, &entry));
  if (!entry->is_in_engine) /* the first generation is: the engine has loaded it */
    entry->phase = MODEL_REMOVED;
  entry->is_clean = true;
  return ERR_OK;
}

/* ---- Fetching ---- */

static void begin_fetching(struct model_work *w)
{
  for (size_t i = 0; i < w->entries.n && !w->fetching.errand; i++) {
    if (model_is_asked_for(w, w->entries.v[i]) && model_fetching_is_due(w->entries.v[i]))
      model_fetching_begin(&w->fetching, w->entries.v[i]);
  }
}

static bool is_file_needed(void *context, const char digest[SHA256_HEX_BYTES])
{
  const struct model_work *w = context;

  for (size_t i = 0; i < w->entries.n; i++) {
    const struct model_entry *entry = w->entries.v[i];
    if (entry->is_in_topic && model_is_asked_for(w, entry) && strcmp(entry->digest, digest) == 0)
      return true;
  }
  return false;
}

/* Remove the files of generations that are not asked for any more. What cannot be removed only takes room. */
static void sweep_files(struct model_work *w)
{
  size_t n = 0;

  if (w->fetching.errand) /* it makes a file */
    return;
  w->must_sweep = false;
  if (model_files_sweep(w->config->store_path, is_file_needed, w, &n) != ERR_OK)
    log_info("model_files_kept", "reason=%s", log_failure());
  else if (n > 0)
    log_info("model_files_removed", "files=%zu", n);
}

/* ---- Loading ---- */

/* Errors of a model are its own; others end the daemon. */
static err_t judge(struct model_entry *entry, err_code_t err)
{
  if (err != ERR_MODEL && err != ERR_FULL && err != ERR_SPACE)
    return err;
  model_entry_fail(entry);
  return ERR_OK;
}

/* With a root that is not known yet, it would be filled with other parts now than after the next start. */
static err_t verify_root(const struct model_work *w, const struct model_entry *entry)
{
  if (entry->lacks_root)
    FAIL(ERR_MODEL, "it derives from %s@%" PRIu32 ", of which the control topic has no record: add that generation too",
         w->config->spaces[entry->space].name, entry->root);
  return ERR_OK;
}

static err_t load(struct model_work *w, struct model_entry *entry, bool are_there_searches)
{
  const struct config_space *configured = &w->config->spaces[entry->space];
  struct engine_space space = {
    .name = configured->name,
    .dim = configured->dim,
    .has_no_cells = !configured->has_cells,
    .generation = entry->generation,
    .parts_of = entry->root,
  };

  TRY(verify_root(w, entry));
  TRY(model_loading_begin(&w->loading, &space, entry, are_there_searches));
  model_entry_enter(entry, MODEL_LOADING);
  return ERR_OK;
}

/* Return when the file was changed; 0: there is none. */
static int64_t time_of(const char *path)
{
  struct stat info;

  if (stat(path, &info) != 0)
    return 0;
  return (int64_t)info.st_mtim.tv_sec * CLOCK_NS_PER_S + info.st_mtim.tv_nsec;
}

/* Has the file of a failed entry changed? */
static bool may_retry(struct model_entry *entry)
{
  if (entry->phase != MODEL_FAILED || !entry->path || clock_now_ns() < entry->look_due_ns)
    return false;
  entry->look_due_ns = clock_now_ns() + LOOK_EVERY_MS * CLOCK_NS_PER_MS;
  return time_of(entry->path) != entry->file_time;
}

static err_t begin_loading(struct model_work *w, bool are_there_searches)
{
  for (size_t i = 0; i < w->entries.n && !w->loading.is_under_way; i++) {
    struct model_entry *entry = w->entries.v[i];
    if (!model_is_asked_for(w, entry) || !entry->path || (entry->phase != MODEL_WAITING && !may_retry(entry)))
      continue;
    if (entry->phase == MODEL_FAILED && entry->is_in_topic) {
      model_entry_reset(entry); /* the file may be another one, or gone */
      model_entry_enter(entry, MODEL_WAITING);
    }
    if (model_fetching_is_needed(entry))
      continue;
    entry->file_time = time_of(entry->path);
    *entry->problem = '\0';
    TRY(judge(entry, load(w, entry, are_there_searches)));
  }
  return ERR_OK;
}

static err_t add_model(struct model_work *w, struct model_entry *entry, struct engine_model **model)
{
  err_code_t err = engine_add_space(w->engine, model);

  engine_model_close(model);
  if (err != ERR_OK)
    return judge(entry, err);
  entry->is_in_engine = true;
  entry->index = (struct index_watch){ 0 };
  model_entry_enter(entry, MODEL_FILLING);
  return ERR_OK;
}

/* Does the state still ask for the model that was being loaded? */
static bool is_still_asked_for(const struct model_work *w, const struct model_entry *entry)
{
  const struct model_generation *asked = model_asked_of(w, entry);

  return asked && !asked->is_retired && strcmp(asked->digest, entry->digest) == 0 && model_follow_has_root(w, entry);
}

static err_t end_loading(struct model_work *w)
{
  struct engine_model *model = NULL;
  bool is_done = false;

  if (!w->loading.is_under_way)
    return ERR_OK;
  struct model_entry *entry = w->loading.entry;
  err_code_t err = model_loading_end(&w->loading, &is_done, &model);
  if (!is_done)
    return ERR_OK;
  if (!is_still_asked_for(w, entry)) {
    engine_model_close(&model);
    model_entry_enter(entry, MODEL_WAITING); /* for another model, or to leave */
    return ERR_OK;
  }
  if (err != ERR_OK)
    return judge(entry, err);
  return add_model(w, entry, &model);
}

/* ---- What nobody waits for ---- */

/* Does the generation that answers use the part? */
static bool is_part_searched(const struct model_work *w, const struct part *part)
{
  struct space_name name;

  if (!space_name_parse(part->space, &name))
    return false;
  size_t space = model_asked_space(w, name.space);
  if (space == w->config->n_spaces)
    return false;
  const struct model_entry *answering = model_entries_find(&w->entries, space, w->current[space]);
  return answering->root == (name.generation ? name.generation : 1);
}

bool model_work_can_wait(const struct model_work *w, const struct item_change *change)
{
  if (change->is_delete || change->is_whole || change->n_attributes > 0)
    return false;
  for (size_t i = 0; i < change->n_parts; i++) {
    if (is_part_searched(w, &change->parts[i]))
      return false;
  }
  return true;
}

static err_t take_walk(struct model_work *w, bool may_fill, const struct model_entry **removed)
{
  if (model_walks_are_due(w, may_fill) && !model_index_is_awaited(w))
    stand_back_enter(w->stand_back);
  err_code_t err = model_walks_step(w, may_fill, removed);
  stand_back_leave(w->stand_back);
  return err;
}

/* ---- Steps ---- */

/* Is it on its way into the engine? One whose file could not be fetched waits for somebody. */
static bool is_coming(const struct model_entry *entry)
{
  bool is_waiting = entry->phase == MODEL_WAITING || entry->phase == MODEL_FETCHING;

  return is_waiting && entry->n_fetch_failures == 0;
}

bool model_work_is_loading(const struct model_work *w)
{
  for (size_t i = 0; i < w->entries.n; i++) {
    if (is_coming(w->entries.v[i]))
      return true;
  }
  return w->loading.is_under_way;
}

void model_work_note_loading(struct model_work *w)
{
  for (size_t i = 0; i < w->entries.n; i++)
    model_entry_forget_unusable(w->entries.v[i]);
}

/* Call note() for each generation that uses the part. */
static void note_part(struct model_work *w, struct span part, struct span key,
                      void (*note)(struct model_entry *entry, struct span key))
{
  struct space_name name;

  if (!space_name_parse(part, &name))
    return;
  for (size_t i = 0; i < w->entries.n; i++) {
    struct model_entry *entry = w->entries.v[i];
    if (entry->is_in_engine && entry->root == (name.generation ? name.generation : 1) &&
        span_equal(model_asked_name(w, entry->space), name.space))
      note(entry, key);
  }
}

void model_work_note_unusable(struct model_work *w, struct span part, struct span key)
{
  note_part(w, part, key, model_entry_note_unusable);
}

void model_work_note_refused(struct model_work *w, struct span part, struct span key)
{
  note_part(w, part, key, model_entry_note_refused);
}

err_t model_work_note_loaded(struct model_work *w)
{
  for (size_t i = 0; i < w->entries.n; i++) {
    if (w->entries.v[i]->phase == MODEL_FILLING)
      model_entry_enter(w->entries.v[i], MODEL_READY);
  }
  TRY(model_index_build_wanted(w));
  TRY(model_switching_step(w));
  return model_leave_behind(w); /* before the first query: nobody sees a retired generation that a start has loaded */
}

err_t model_work_step(struct model_work *w, bool may_fill, bool *is_busy, const struct model_entry **removed)
{
  *removed = NULL;
  TRY(end_loading(w));
  model_fetching_step(&w->fetching);
  TRY(model_follow_state(w));
  begin_fetching(w);
  TRY(begin_loading(w, may_fill));
  TRY(model_switching_step(w));
  TRY(model_leave_behind(w));
  w->n_followed = w->state->n_applied;
  model_index_look(w);
  TRY(take_walk(w, may_fill, removed));
  TRY(model_switching_step(w));
  if (w->must_sweep && may_fill)
    sweep_files(w);
  *is_busy = model_walks_are_due(w, may_fill);
  return ERR_OK;
}
