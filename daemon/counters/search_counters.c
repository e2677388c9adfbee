/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of each generation: readers see only rows that are complete, and a lock orders the threads that add one.
 * Everything that readers see is atomic, because rows are used again. A search that ends after its generation was
 * removed may be counted for the next one. */
#include "daemon/counters/search_counters.h"

#include <pthread.h>

#include "base/mem.h"

#define NO_NUMBER SIZE_MAX

struct space_counters {
  _Atomic size_t number; /* NO_NUMBER: free */
  _Atomic size_t n;
  struct search_row rows[SEARCH_COUNTERS_METHODS];
};

/* More methods than all similarities have. */
enum { NAMES_MAX = 128 };

struct search_counters {
  pthread_mutex_t mutex; /* of those who add a row */
  search_counters_is_there is_there;
  void *context;
  struct space_counters *spaces; /* [n_spaces] */
  size_t n_spaces;
  char names[NAMES_MAX][METHOD_NAME_MAX]; /* of methods: rows point to them, and they stay */
  size_t n_names;
};

err_t search_counters_open(size_t n_spaces, search_counters_is_there is_there, void *context,
                           struct search_counters **out)
{
  AUTO(search_counters_close) struct search_counters *c = NULL;

  TRY(mem_array(1, sizeof *c, &c));
  pthread_mutex_init(&c->mutex, NULL);
  c->is_there = is_there;
  c->context = context;
  c->n_spaces = n_spaces;
  TRY(mem_reserve(n_spaces, sizeof *c->spaces, &c->spaces));
  for (size_t i = 0; i < n_spaces; i++)
    atomic_init(&c->spaces[i].number, NO_NUMBER);
  *out = c;
  c = NULL;
  return ERR_OK;
}

void search_counters_close(struct search_counters **c)
{
  if (!*c)
    return;
  pthread_mutex_destroy(&(*c)->mutex);
  mem_release(&(*c)->spaces, (*c)->n_spaces, sizeof *(*c)->spaces);
  mem_free(c);
}

/* Return NULL if no search of the generation was counted. */
static struct space_counters *find_space(const struct search_counters *c, size_t number)
{
  for (size_t i = 0; i < c->n_spaces; i++) {
    if (atomic_load_explicit(&c->spaces[i].number, memory_order_acquire) == number)
      return &c->spaces[i];
  }
  return NULL;
}

/* Return NULL if the method has no row. */
static struct search_row *find_row(struct space_counters *space, const struct method *method)
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
static void forget_removed(struct search_counters *c)
{
  for (size_t i = 0; i < c->n_spaces; i++) {
    size_t number = atomic_load(&c->spaces[i].number);
    if (number == NO_NUMBER || c->is_there(c->context, number))
      continue;
    atomic_store(&c->spaces[i].number, NO_NUMBER);
    atomic_store(&c->spaces[i].n, 0);
  }
}

/* Return NULL if there is no room. */
static struct space_counters *find_or_add_space(struct search_counters *c, size_t number)
{
  struct space_counters *space = find_space(c, number);

  if (space)
    return space;
  forget_removed(c);
  space = find_space(c, NO_NUMBER);
  if (space)
    atomic_store(&space->number, number);
  return space;
}

/* Keep the name of a method. Return NULL if there is no room. */
static const char *keep_name(struct search_counters *c, const struct method *method)
{
  for (size_t i = 0; i < c->n_names; i++) {
    if (strcmp(c->names[i], method->name) == 0)
      return c->names[i];
  }
  if (c->n_names == NAMES_MAX)
    return NULL;
  memcpy(c->names[c->n_names], method->name, METHOD_NAME_MAX);
  return c->names[c->n_names++];
}

static struct search_row *find_or_add_row(struct search_counters *c, size_t number, const struct method *method)
{
  struct space_counters *space = find_or_add_space(c, number);
  struct search_row *row = find_row(space, method); /* another thread may have added it */
  size_t n = space ? atomic_load(&space->n) : SEARCH_COUNTERS_METHODS;

  if (row || n == SEARCH_COUNTERS_METHODS)
    return row;
  const char *name = keep_name(c, method);
  if (!name)
    return NULL;
  clear_row(&space->rows[n]);
  atomic_store(&space->rows[n].method, name);
  atomic_store(&space->n, n + 1);
  return &space->rows[n];
}

/* Return NULL if there is no room for another row. */
static struct search_row *add_row(struct search_counters *c, size_t number, const struct method *method)
{
  pthread_mutex_lock(&c->mutex);
  struct search_row *row = find_or_add_row(c, number, method);
  pthread_mutex_unlock(&c->mutex);
  return row;
}

static void add(_Atomic uint64_t *sum, uint64_t n)
{
  atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
}

void search_counters_add(struct search_counters *c, size_t number, const struct method *method,
                         const struct answer *answers, size_t n)
{
  struct search_row *row = find_row(find_space(c, number), method);

  if (!row && !(row = add_row(c, number, method)))
    return;
  hist_add(&row->batch_us, answers[0].searched_us);
  for (size_t i = 0; i < n; i++) {
    if (answers[i].error) /* it has no hits */
      continue;
    add(&row->n_queries, 1);
    add(&row->n_proven, answers[i].receipt.is_exact);
    add(&row->n_items, answers[i].counts.items);
    add(&row->n_scored, answers[i].counts.scored);
  }
}

const struct search_row *search_counters_of(const struct search_counters *c, size_t number, size_t *n)
{
  const struct space_counters *space = find_space(c, number);

  *n = space ? atomic_load(&space->n) : 0;
  return space ? space->rows : NULL;
}
