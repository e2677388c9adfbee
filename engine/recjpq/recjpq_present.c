/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of sub-items by filter and split. */
#include "engine/recjpq/recjpq_present.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"

struct known {
  uint64_t words_id; /* 0: no filter */
  uint64_t splits;   /* a bit for each whose set is known */
  uint64_t last_use;
};

struct recjpq_present {
  pthread_mutex_t lock; /* of all that follows */
  struct known known[RECJPQ_PRESENT_FILTERS];
  struct recjpq_present_set *sets; /* [RECJPQ_PRESENT_FILTERS][n_splits] */
  size_t n_splits;
  uint64_t n_uses;
  bool is_empty;
};

err_t recjpq_present_open(size_t n_splits, struct recjpq_present **out)
{
  AUTO(recjpq_present_close) struct recjpq_present *p = NULL;

  TRY(mem_array(1, sizeof *p, &p));
  pthread_mutex_init(&p->lock, NULL);
  p->n_splits = n_splits;
  p->is_empty = true;
  TRY(mem_array(RECJPQ_PRESENT_FILTERS, n_splits * sizeof *p->sets, &p->sets));
  *out = p;
  p = NULL;
  return ERR_OK;
}

void recjpq_present_close(struct recjpq_present **p)
{
  if (!*p)
    return;
  mem_free(&(*p)->sets);
  pthread_mutex_destroy(&(*p)->lock);
  mem_free(p);
}

/* The writer calls this for each item, so it must cost nothing: no search has the columns, and nobody takes the lock.
 */
void recjpq_present_forget(struct recjpq_present *p)
{
  if (p->is_empty)
    return;
  memset(p->known, 0, sizeof p->known);
  p->is_empty = true;
}

static size_t find(const struct recjpq_present *p, uint64_t words_id)
{
  size_t i = 0;

  while (i < RECJPQ_PRESENT_FILTERS && p->known[i].words_id != words_id)
    i++;
  return i;
}

uint64_t recjpq_present_get(struct recjpq_present *p, uint64_t words_id, struct recjpq_present_set *sets)
{
  uint64_t splits = 0;

  if (words_id == 0)
    return 0;
  pthread_mutex_lock(&p->lock);
  size_t i = find(p, words_id);
  if (i < RECJPQ_PRESENT_FILTERS) {
    memcpy(sets, p->sets + i * p->n_splits, p->n_splits * sizeof *sets);
    splits = p->known[i].splits;
    p->known[i].last_use = ++p->n_uses;
  }
  pthread_mutex_unlock(&p->lock);
  return splits;
}

/* Return the place of a filter; a new one takes that of the stalest. */
static size_t claim(struct recjpq_present *p, uint64_t words_id)
{
  size_t i = find(p, words_id), stalest = 0;

  if (i < RECJPQ_PRESENT_FILTERS)
    return i;
  for (i = 1; i < RECJPQ_PRESENT_FILTERS; i++)
    stalest = p->known[i].last_use < p->known[stalest].last_use ? i : stalest;
  p->known[stalest] = (struct known){ .words_id = words_id, .last_use = ++p->n_uses };
  return stalest;
}

void recjpq_present_put(struct recjpq_present *p, uint64_t words_id, size_t split, const struct recjpq_present_set *set)
{
  if (words_id == 0)
    return;
  pthread_mutex_lock(&p->lock);
  size_t i = claim(p, words_id);
  p->sets[i * p->n_splits + split] = *set;
  p->known[i].splits |= UINT64_C(1) << split;
  p->is_empty = false;
  pthread_mutex_unlock(&p->lock);
}
