/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of open queries, one for each partition, behind one lock. */
#include "ingest/readers/offset_tracker.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"

#define NO_ENTRY UINT32_MAX

/* A query that has begun. The entries of a partition form a chain in order of offset. Free entries form another chain.
 */
struct entry {
  uint32_t next;
  uint32_t partition_index; /* NO_ENTRY: its partition was forgotten */
  int64_t offset;
  bool is_done;
};

struct partition {
  int32_t id;
  uint32_t first; /* the oldest query that is not done: it holds back the commit */
  uint32_t last;
  int64_t begun;  /* the offset after the newest query */
  int64_t next;   /* all queries below this offset are done */
  int64_t listed; /* the `next` that offset_tracker_committable() listed last */
};

struct offset_tracker {
  _Atomic unsigned n_owners;
  pthread_mutex_t mutex;
  struct entry *entries;
  size_t n_entries;
  size_t entries_capacity;
  uint32_t free;
  size_t n_open;
  size_t n_held; /* entries in use */
  struct partition *partitions;
  size_t n_partitions;
  size_t partitions_capacity;
};

err_t offset_tracker_open(struct offset_tracker **out)
{
  struct offset_tracker *t;

  TRY(mem_array(1, sizeof *t, &t));
  atomic_store(&t->n_owners, 1);
  pthread_mutex_init(&t->mutex, NULL);
  t->free = NO_ENTRY;
  *out = t;
  return ERR_OK;
}

struct offset_tracker *offset_tracker_share(struct offset_tracker *t)
{
  atomic_fetch_add(&t->n_owners, 1);
  return t;
}

void offset_tracker_close(struct offset_tracker **t)
{
  struct offset_tracker *own = *t;

  *t = NULL;
  if (!own || atomic_fetch_sub(&own->n_owners, 1) > 1)
    return;
  pthread_mutex_destroy(&own->mutex);
  mem_free(&own->entries);
  mem_free(&own->partitions);
  mem_free(&own);
}

static err_t find_partition(struct offset_tracker *t, int32_t id, int64_t offset, uint32_t *out)
{
  for (size_t i = 0; i < t->n_partitions; i++) {
    if (t->partitions[i].id == id) {
      *out = (uint32_t)i;
      return ERR_OK;
    }
  }
  TRY(mem_grow(t->n_partitions + 1, sizeof *t->partitions, &t->partitions_capacity, &t->partitions));
  *out = (uint32_t)t->n_partitions;
  t->partitions[t->n_partitions++] = (struct partition){ id, NO_ENTRY, NO_ENTRY, offset, offset, offset };
  return ERR_OK;
}

static err_t take_entry(struct offset_tracker *t, uint32_t *out)
{
  if (t->free != NO_ENTRY) {
    *out = t->free;
    t->free = t->entries[*out].next;
  } else {
    TRY(mem_grow(t->n_entries + 1, sizeof *t->entries, &t->entries_capacity, &t->entries));
    *out = (uint32_t)t->n_entries++;
  }
  t->n_held++;
  return ERR_OK;
}

static void free_entry(struct offset_tracker *t, uint32_t entry)
{
  t->entries[entry].next = t->free;
  t->free = entry;
  t->n_held--;
}

/* Detach the queries of a partition: their tickets end without effect. */
static void forget_queries(struct offset_tracker *t, struct partition *p)
{
  for (uint32_t e = p->first; e != NO_ENTRY;) {
    uint32_t next = t->entries[e].next;
    t->entries[e].partition_index = NO_ENTRY;
    if (t->entries[e].is_done)
      free_entry(t, e);
    e = next;
  }
  p->first = p->last = NO_ENTRY;
}

static err_t begin(struct offset_tracker *t, int32_t partition, int64_t offset, uint32_t *ticket, bool *is_replaced)
{
  uint32_t index, entry;

  TRY(find_partition(t, partition, offset, &index));
  TRY(take_entry(t, &entry));
  struct partition *p = &t->partitions[index];
  if (is_replaced)
    *is_replaced = offset < p->begun;
  if (offset < p->begun) {
    forget_queries(t, p);
    p->next = p->listed = offset;
  }
  p->begun = offset + 1;
  t->entries[entry] = (struct entry){ NO_ENTRY, index, offset, false };
  if (p->last == NO_ENTRY)
    p->first = entry;
  else
    t->entries[p->last].next = entry;
  p->last = entry;
  t->n_open++;
  *ticket = entry;
  return ERR_OK;
}

err_t offset_tracker_begin(struct offset_tracker *t, int32_t partition, int64_t offset, uint32_t *ticket,
                           bool *is_replaced)
{
  pthread_mutex_lock(&t->mutex);
  err_code_t err = begin(t, partition, offset, ticket, is_replaced);
  pthread_mutex_unlock(&t->mutex);
  return err;
}

/* Free the done entries at the front of a partition's chain. */
static void advance(struct offset_tracker *t, struct partition *p)
{
  while (p->first != NO_ENTRY && t->entries[p->first].is_done) {
    uint32_t entry = p->first;
    p->next = t->entries[entry].offset + 1;
    p->first = t->entries[entry].next;
    free_entry(t, entry);
  }
  if (p->first == NO_ENTRY)
    p->last = NO_ENTRY;
}

void offset_tracker_done(struct offset_tracker *t, uint32_t ticket)
{
  pthread_mutex_lock(&t->mutex);
  struct entry *e = &t->entries[ticket];
  e->is_done = true;
  t->n_open--;
  if (e->partition_index == NO_ENTRY)
    free_entry(t, ticket);
  else
    advance(t, &t->partitions[e->partition_index]);
  pthread_mutex_unlock(&t->mutex);
}

void offset_tracker_forget(struct offset_tracker *t)
{
  pthread_mutex_lock(&t->mutex);
  for (size_t i = 0; i < t->n_partitions; i++)
    forget_queries(t, &t->partitions[i]);
  t->n_partitions = 0;
  pthread_mutex_unlock(&t->mutex);
}

size_t offset_tracker_committable(struct offset_tracker *t, struct position *positions, size_t capacity)
{
  size_t n = 0;

  pthread_mutex_lock(&t->mutex);
  for (size_t i = 0; i < t->n_partitions && n < capacity; i++) {
    struct partition *p = &t->partitions[i];
    if (p->next > p->listed) {
      positions[n++] = (struct position){ p->id, p->next };
      p->listed = p->next;
    }
  }
  pthread_mutex_unlock(&t->mutex);
  return n;
}

void offset_tracker_tell_again(struct offset_tracker *t)
{
  pthread_mutex_lock(&t->mutex);
  for (size_t i = 0; i < t->n_partitions; i++)
    t->partitions[i].listed = -1;
  pthread_mutex_unlock(&t->mutex);
}

size_t offset_tracker_n_open(struct offset_tracker *t)
{
  pthread_mutex_lock(&t->mutex);
  size_t n = t->n_open;
  pthread_mutex_unlock(&t->mutex);
  return n;
}

size_t offset_tracker_n_held(struct offset_tracker *t)
{
  pthread_mutex_lock(&t->mutex);
  size_t n = t->n_held;
  pthread_mutex_unlock(&t->mutex);
  return n;
}
