/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of changed words. */
#include "base/change_log.h"

#include <assert.h>

#include "base/mem.h"

err_t change_log_init(struct change_log *out)
{
  *out = (struct change_log){ 0 };
  return mem_reserve(CHANGE_LOG_WORDS, sizeof *out->ring, &out->ring);
}

void change_log_fini(struct change_log *l)
{
  mem_release(&l->ring, CHANGE_LOG_WORDS, sizeof *l->ring);
}

static struct word_change *change_at(const struct change_log *l, uint64_t i)
{
  return &l->ring[i % CHANGE_LOG_WORDS];
}

/* Forget the oldest change, if its place is needed. */
static void make_room(struct change_log *l)
{
  if (l->n < CHANGE_LOG_WORDS)
    return;
  if (l->n - CHANGE_LOG_WORDS >= l->n_dated)
    l->forgets_next = true;
  else if (change_at(l, l->n)->epoch > l->known_since)
    l->known_since = change_at(l, l->n)->epoch;
}

void change_log_touch(struct change_log *l, size_t i)
{
  if (l->n > l->n_dated && change_at(l, l->n - 1)->word == i / 64)
    return;
  make_room(l);
  *change_at(l, l->n++) = (struct word_change){ .word = i / 64 };
}

/* The first change that the ring still has. */
static uint64_t oldest(const struct change_log *l)
{
  return l->n < CHANGE_LOG_WORDS ? 0 : l->n - CHANGE_LOG_WORDS;
}

void change_log_date(struct change_log *l, uint64_t epoch)
{
  uint64_t first = l->n_dated > oldest(l) ? l->n_dated : oldest(l);

  if (l->n > l->n_dated || l->forgets_next)
    l->epoch = epoch;
  if (l->forgets_next)
    l->known_since = epoch;
  for (uint64_t i = first; i < l->n; i++)
    change_at(l, i)->epoch = epoch;
  l->n_dated = l->n;
  l->forgets_next = false;
}

size_t change_log_count(const struct change_log *l, uint64_t since)
{
  uint64_t low = oldest(l), high = l->n;

  assert(since >= l->known_since);
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (change_at(l, middle)->epoch > since)
      high = middle;
    else
      low = middle + 1;
  }
  return l->n - low;
}
