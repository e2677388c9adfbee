/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the entries, under a lock. */
#include "daemon/models/models_report.h"

#include <stdio.h>

#include "base/mem.h"
#include "daemon/models/model_index.h"
#include "daemon/models/model_switching.h"

void models_report_init(struct models_report *r)
{
  *r = (struct models_report){ .next = -1 };
  pthread_mutex_init(&r->mutex, NULL);
}

void models_report_fini(struct models_report *r)
{
  mem_free(&r->rows);
  pthread_mutex_destroy(&r->mutex);
}

void models_report_lock(struct models_report *r)
{
  pthread_mutex_lock(&r->mutex);
}

void models_report_unlock(struct models_report *r)
{
  pthread_mutex_unlock(&r->mutex);
}

static void copy_entry(const struct model_work *work, const struct model_entry *entry, struct models_report_row *row)
{
  const struct config_space *space = &work->config->spaces[entry->space];

  *row = (struct models_report_row){
    .space = space->name,
    .generation = entry->generation,
    .root = entry->root,
    .phase = entry->phase,
    .is_in_engine = entry->is_in_engine,
    .is_indexed = !model_index_is_lacking(work, entry),
    .is_current = work->current[entry->space] == entry->generation,
    .is_wanted = model_switching_wanted(work, entry->space) == entry->generation,
    .is_failed = entry->phase == MODEL_FAILED || entry->n_fetch_failures > 0,
    .is_in_topic = entry->is_in_topic,
    .n_bytes = entry->n_bytes,
    .n_fetched = entry->n_fetched,
    .n_walked = entry->n_walked,
    .n_filled = entry->n_filled,
    .n_unusable = entry->n_unusable,
    .n_refused = entry->n_refused,
  };
  snprintf(row->digest, sizeof row->digest, "%s", entry->digest);
  snprintf(row->path, sizeof row->path, "%s", entry->path ? entry->path : space->model_path);
  snprintf(row->problem, sizeof row->problem, "%s", entry->problem);
  snprintf(row->refused, sizeof row->refused, "%s", entry->refused);
}

err_t models_report_copy(struct models_report *r, const struct model_work *work)
{
  TRY(mem_grow(work->entries.n, sizeof *r->rows, &r->capacity, &r->rows));
  for (size_t i = 0; i < work->entries.n; i++)
    copy_entry(work, work->entries.v[i], &r->rows[i]);
  r->n = work->entries.n;
  return ERR_OK;
}
