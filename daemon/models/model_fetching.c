/* SPDX-License-Identifier: Apache-2.0 */
/* The errand of a fetch, and what its end means for an entry. */
#include "daemon/models/model_fetching.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/errand.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/models/model_entries.h"
#include "daemon/models/model_fetch.h"

/* A stop waits so long for a file that is being verified, and until the end for the reading of the topic. */
enum { DROP_WAIT_MS = 1000, DROP_STEP_MS = 5 };

/* The first pause before another attempt, and how often it is doubled. */
enum { PAUSE_MS = 2000, PAUSE_DOUBLINGS_MAX = 3 };

struct model_fetch_errand {
  struct model_fetch fetch;
  struct errand errand;
};

void model_fetching_init(const struct config *config, const struct kafka_layers *layers, struct model_fetching *out)
{
  *out = (struct model_fetching){ .config = config, .layers = *layers };
  out->layers.client = NULL; /* the name in the statistics is that of the control topic's consumer */
}

bool model_fetching_is_needed(const struct model_entry *entry)
{
  return entry->is_in_topic && !entry->is_fetched;
}

bool model_fetching_is_due(const struct model_entry *entry)
{
  return model_fetching_is_needed(entry) && entry->phase == MODEL_WAITING && clock_now_ns() >= entry->fetch_due_ns;
}

bool model_fetching_is_of(const struct model_fetching *f, const struct model_entry *entry)
{
  return f->errand && f->entry == entry;
}

/* ---- Beginning ---- */

/* Fetch again after a pause. */
static void pause_fetch(struct model_entry *entry)
{
  int n_doublings = entry->n_fetch_failures < PAUSE_DOUBLINGS_MAX ? (int)entry->n_fetch_failures : PAUSE_DOUBLINGS_MAX;

  entry->n_fetch_failures++;
  entry->fetch_due_ns = clock_now_ns() + ((int64_t)PAUSE_MS << n_doublings) * CLOCK_NS_PER_MS;
  model_entry_enter(entry, MODEL_WAITING);
}

/* The calling thread's newest failure is why there is no file. The same one is logged once. */
static void note_failure(struct model_entry *entry)
{
  if (strncmp(entry->problem, err_message(), sizeof entry->problem - 1) != 0)
    log_error("model_not_fetched", "generation=%s reason=%s note=\"it is tried again; the former generations answer\"",
              entry->name, log_failure());
  snprintf(entry->problem, sizeof entry->problem, "%s", err_message());
  pause_fetch(entry);
}

static err_t verify_allowed(const struct model_fetching *f, const struct model_entry *entry)
{
  if (!f->config || !*f->config->models.files_topic)
    FAIL(ERR_CONFIG, "the file is in the topic of model files, but models.files_topic names none");
  if (entry->n_bytes > f->config->models.max_file_bytes)
    FAIL(ERR_CONFIG, "the file has %" PRIu64 " bytes, more than models.max_file_bytes allows, %" PRIu64, entry->n_bytes,
         f->config->models.max_file_bytes);
  return ERR_OK;
}

static err_code_t run(void *context)
{
  struct model_fetch_errand *e = context;

  progress_listener_set((struct progress_listener){ 0 }); /* the catalogue thread shows by itself that it goes on */
  return model_fetch_run(&e->fetch);
}

static err_t begin(struct model_fetching *f, const struct model_entry *entry)
{
  struct model_fetch_errand *e;

  TRY(verify_allowed(f, entry));
  TRY(mem_array(1, sizeof *e, &e));
  e->fetch.layers = f->layers;
  e->fetch.topic = f->config->models.files_topic;
  e->fetch.n_bytes = entry->n_bytes;
  e->fetch.read_in_vain = entry->read_in_vain;
  atomic_init(&e->fetch.n_fetched, entry->n_fetched);
  snprintf(e->fetch.directory, sizeof e->fetch.directory, "%s", f->config->store_path);
  snprintf(e->fetch.digest, sizeof e->fetch.digest, "%s", entry->digest);
  if (!errand_begin("fetch_model", run, e, &e->errand)) {
    mem_free(&e);
    FAIL(ERR_SYSTEM, "there is no thread to fetch the file");
  }
  f->errand = e;
  return ERR_OK;
}

void model_fetching_begin(struct model_fetching *f, struct model_entry *entry)
{
  if (begin(f, entry) != ERR_OK) {
    note_failure(entry);
    return;
  }
  f->entry = entry;
  model_entry_enter(entry, MODEL_FETCHING);
}

/* ---- Ending ---- */

void model_fetching_cancel(struct model_fetching *f)
{
  if (f->errand)
    atomic_store(&f->errand->fetch.is_cancelled, true);
}

static void note_end(struct model_entry *entry, const struct model_fetch *fetch, err_code_t err)
{
  entry->read_in_vain = err == ERR_MODEL ? fetch->read_in_vain : 0;
  if (err == ERR_STOPPING) {
    model_entry_enter(entry, MODEL_WAITING);
    return;
  }
  if (err != ERR_OK && fetch->is_unchanged) {
    pause_fetch(entry); /* the problem is the same */
    return;
  }
  if (err != ERR_OK) {
    note_failure(entry);
    return;
  }
  entry->is_fetched = true;
  entry->n_fetch_failures = 0;
  *entry->problem = '\0';
  model_entry_enter(entry, MODEL_WAITING);
}

void model_fetching_step(struct model_fetching *f)
{
  struct model_fetch_errand *e = f->errand;

  if (!e)
    return;
  f->entry->n_fetched = atomic_load(&e->fetch.n_fetched);
  if (!errand_is_over(&e->errand))
    return;
  errand_join(&e->errand);
  note_end(f->entry, &e->fetch, err_give_back(&e->errand.failure));
  mem_free(&f->errand);
}

/* ---- Dropping ---- */

static void close_errand(void *errand)
{
  struct model_fetch_errand *e = errand;

  mem_free(&e);
}

/* Clients of Kafka must not outlive the setup that they use. Once it is cancelled, the fetch opens none. */
void model_fetching_drop(struct model_fetching *f)
{
  if (!f->errand)
    return;
  model_fetching_cancel(f);
  while (atomic_load(&f->errand->fetch.uses_kafka))
    clock_sleep_ns(DROP_STEP_MS * CLOCK_NS_PER_MS);
  errand_drop(&f->errand->errand, DROP_WAIT_MS, close_errand);
  f->errand = NULL;
}
