/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of each generation: readers see only rows that are complete, and a lock orders the threads that add one.
 * Everything that readers see is atomic, because rows are used again. A search that ends after its generation was
 * removed may be counted for the next one. */
#include "daemon/search_figures.h"

#include <pthread.h>

#include "base/mem.h"

#define NO_NUMBER SIZE_MAX

struct space_figures {
  _Atomic size_t number; /* NO_NUMBER: free */
  _Atomic size_t n;
  struct search_row rows[SEARCH_FIGURES_METHODS];
};

/* More methods than all similarities have. */
enum { NAMES_MAX = 128 };

struct search_figures {
  pthread_mutex_t mutex; /* of those who add a row */
  search_figures_is_there is_there;
  void *context;
  struct space_figures *spaces; /* [n_spaces] */
  size_t n_spaces;
  char names[NAMES_MAX][METHOD_NAME_MAX]; /* of methods: rows point to them, and they stay */
  size_t n_names;
};

err_t search_figures_open(size_t n_spaces, search_figures_is_there is_there, void *context, struct search_figures **out)
{
  AUTO(search_figures_close) struct search_figures *f = NULL;

  TRY(mem_array(1, sizeof *f, &f));
  pthread_mutex_init(&f->mutex, NULL);
  f->is_there = is_there;
  f->context = context;
  f->n_spaces = n_spaces;
  TRY(mem_reserve(n_spaces, sizeof *f->spaces, &f->spaces));
  for (size_t i = 0; i < n_spaces; i++)
    atomic_init(&f->spaces[i].number, NO_NUMBER);
  *out = f;
  f = NULL;
  return ERR_OK;
}

void search_figures_close(struct search_figures **f)
{
  if (!*f)
    return;
  pthread_mutex_destroy(&(*f)->mutex);
  mem_release(&(*f)->spaces, (*f)->n_spaces, sizeof *(*f)->spaces);
  mem_free(f);
}

/* Return NULL if no search of the generation was counted. */
static struct space_figures *find_space(const struct search_figures *f, size_t number)
{
  for (size_t i = 0; i < f->n_spaces; i++) {
    if (atomic_load_explicit(&f->spaces[i].number, memory_order_acquire) == number)
      return &f->spaces[i];
  }
  return NULL;
}

/* Return NULL if the method has no row. */
static struct search_row *find_row(struct space_figures *space, const struct method *method)
{
  size_t n = space ? atomic_load(&space->n) : 0;

  for (size_t i = 0; i < n; i++) {
    if (strcmp(atomic_load(&space->rows[i].method), method->name) == 0)
      return &space->rows[i];
  }
  return NULL;
}

/* ---- Adding rows, under the lock ---- */

static void clear_row(struct search_row *row)
{
  for (size_t i = 0; i < HIST_BUCKETS; i++)
    atomic_store(&row->batch_us.counts[i], 0);
  atomic_store(&row->batch_us.sum, 0);
  atomic_store(&row->n_queries, 0);
  atomic_store(&row->n_proven, 0);
  atomic_store(&row->n_items, 0);
  atomic_store(&row->n_scored, 0);
}

/* Free what generations had that have been removed. */
static void forget_removed(struct search_figures *f)
{
  for (size_t i = 0; i < f->n_spaces; i++) {
    size_t number = atomic_load(&f->spaces[i].number);
    if (number == NO_NUMBER || f->is_there(f->context, number))
      continue;
    atomic_store(&f->spaces[i].number, NO_NUMBER);
    atomic_store(&f->spaces[i].n, 0);
  }
}

/* Return NULL if there is no room. */
static struct space_figures *find_or_add_space(struct search_figures *f, size_t number)
{
  struct space_figures *space = find_space(f, number);

  if (space)
    return space;
  forget_removed(f);
  space = find_space(f, NO_NUMBER);
  if (space)
    atomic_store(&space->number, number);
  return space;
}

/* Keep the name of a method. Return NULL if there is no room. */
static const char *keep_name(struct search_figures *f, const struct method *method)
{
  for (size_t i = 0; i < f->n_names; i++) {
    if (strcmp(f->names[i], method->name) == 0)
      return f->names[i];
  }
  if (f->n_names == NAMES_MAX)
    return NULL;
  memcpy(f->names[f->n_names], method->name, METHOD_NAME_MAX);
  return f->names[f->n_names++];
}

static struct search_row *find_or_add_row(struct search_figures *f, size_t number, const struct method *method)
{
  struct space_figures *space = find_or_add_space(f, number);
  struct search_row *row = find_row(space, method); /* another thread may have added it */
  size_t n = space ? atomic_load(&space->n) : SEARCH_FIGURES_METHODS;

  if (row || n == SEARCH_FIGURES_METHODS)
    return row;
  const char *name = keep_name(f, method);
  if (!name)
    return NULL;
  clear_row(&space->rows[n]);
  atomic_store(&space->rows[n].method, name);
  atomic_store(&space->n, n + 1);
  return &space->rows[n];
}

/* Return NULL if there is no room for another row. */
static struct search_row *add_row(struct search_figures *f, size_t number, const struct method *method)
{
  pthread_mutex_lock(&f->mutex);
  struct search_row *row = find_or_add_row(f, number, method);
  pthread_mutex_unlock(&f->mutex);
  return row;
}

static void add(_Atomic uint64_t *sum, uint64_t n)
{
  atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
}

void search_figures_add(struct search_figures *f, size_t number, const struct method *method,
                        const struct answer *answers, size_t n)
{
  struct search_row *row = find_row(find_space(f, number), method);

  if (!row && !(row = add_row(f, number, method)))
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

const struct search_row *search_figures_of(const struct search_figures *f, size_t number, size_t *n)
{
  const struct space_figures *space = find_space(f, number);

  *n = space ? atomic_load(&space->n) : 0;
  return space ? space->rows : NULL;
}
