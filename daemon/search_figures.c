/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of each space: readers see only rows that are complete, and a lock orders the threads that add one. */
#include "daemon/search_figures.h"

#include <pthread.h>

#include "base/mem.h"

struct space_figures {
  _Atomic size_t n;
  struct search_row rows[SEARCH_FIGURES_METHODS];
};

struct search_figures {
  pthread_mutex_t mutex;        /* of those who add a row */
  struct space_figures *spaces; /* [n_spaces] */
};

err_t search_figures_open(size_t n_spaces, struct search_figures **out)
{
  AUTO(search_figures_close) struct search_figures *f = NULL;

  TRY(mem_array(1, sizeof *f, &f));
  pthread_mutex_init(&f->mutex, NULL);
  TRY(mem_array(n_spaces, sizeof *f->spaces, &f->spaces));
  *out = f;
  f = NULL;
  return ERR_OK;
}

void search_figures_close(struct search_figures **f)
{
  if (!*f)
    return;
  pthread_mutex_destroy(&(*f)->mutex);
  mem_free(&(*f)->spaces);
  mem_free(f);
}

/* Return NULL if the method has no row. */
static struct search_row *find(struct space_figures *space, const struct method *method)
{
  size_t n = atomic_load(&space->n);

  for (size_t i = 0; i < n; i++) {
    if (strcmp(space->rows[i].method, method->name) == 0)
      return &space->rows[i];
  }
  return NULL;
}

/* Return NULL if there is no room for another row. */
static struct search_row *add_row(struct search_figures *f, struct space_figures *space, const struct method *method)
{
  pthread_mutex_lock(&f->mutex);
  struct search_row *row = find(space, method); /* another thread may have added it */
  size_t n = atomic_load(&space->n);
  if (!row && n < SEARCH_FIGURES_METHODS) {
    row = &space->rows[n];
    memcpy(row->method, method->name, sizeof row->method);
    atomic_store(&space->n, n + 1);
  }
  pthread_mutex_unlock(&f->mutex);
  return row;
}

static void add(_Atomic uint64_t *sum, uint64_t n)
{
  atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
}

void search_figures_add(struct search_figures *f, size_t space, const struct method *method,
                        const struct answer *answers, size_t n)
{
  struct search_row *row = find(&f->spaces[space], method);

  if (!row && !(row = add_row(f, &f->spaces[space], method)))
    return;
  hist_add(&row->batch_us, answers[0].searched_us);
  for (size_t i = 0; i < n; i++) {
    if (answers[i].error) /* it was not searched */
      continue;
    add(&row->n_queries, 1);
    add(&row->n_proven, answers[i].receipt.is_exact);
    add(&row->n_items, answers[i].counts.items);
    add(&row->n_scored, answers[i].counts.scored);
  }
}

const struct search_row *search_figures_of(const struct search_figures *f, size_t space, size_t *n)
{
  *n = atomic_load(&f->spaces[space].n);
  return f->spaces[space].rows;
}
