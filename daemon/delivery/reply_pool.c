/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of reply records: one reserved array and a list of free records. */
#include "daemon/delivery/reply_pool.h"

#include <pthread.h>

#include "base/mem.h"

/* Bytes that the buffers of all free records may keep: 128 bytes each for 32,768 records. A buffer larger than
 * KEPT_EACH_MAX is always freed. Otherwise a few long keys would, in time, leave a large buffer in every record. */
enum { KEPT_BYTES_MAX = 4 << 20, KEPT_EACH_MAX = 512 };

struct reply_pool {
  pthread_mutex_t mutex;
  struct reply_record *records; /* [max_records]; the first n_touched have been in use */
  size_t max_records;
  size_t n_touched;
  struct reply_record *free_records; /* the last freed first: it is in the cache */
  size_t kept_bytes;
  _Atomic size_t n_used;
};

err_t reply_pool_open(size_t max_records, struct reply_pool **out)
{
  AUTO(reply_pool_close) struct reply_pool *p = NULL;

  TRY(mem_array(1, sizeof *p, &p));
  pthread_mutex_init(&p->mutex, NULL);
  TRY(mem_reserve(max_records, sizeof *p->records, &p->records));
  p->max_records = max_records;
  *out = p;
  p = NULL;
  return ERR_OK;
}

void reply_pool_close(struct reply_pool **p)
{
  if (!*p)
    return;
  for (size_t i = 0; i < (*p)->n_touched; i++)
    mem_free(&(*p)->records[i].bytes);
  mem_release(&(*p)->records, (*p)->max_records, sizeof *(*p)->records);
  pthread_mutex_destroy(&(*p)->mutex);
  mem_free(p);
}

struct reply_record *reply_pool_take(struct reply_pool *p)
{
  pthread_mutex_lock(&p->mutex);
  struct reply_record *record = p->free_records;
  if (record) {
    p->free_records = record->next_free;
    p->kept_bytes -= record->capacity;
  } else if (p->n_touched < p->max_records) {
    record = &p->records[p->n_touched++];
  }
  if (record)
    atomic_fetch_add(&p->n_used, 1);
  pthread_mutex_unlock(&p->mutex);
  if (record)
    *record = (struct reply_record){ .bytes = record->bytes, .capacity = record->capacity };
  return record;
}

void reply_pool_put(struct reply_pool *p, struct reply_record *record)
{
  pthread_mutex_lock(&p->mutex);
  if (record->capacity > KEPT_EACH_MAX || p->kept_bytes + record->capacity > KEPT_BYTES_MAX) {
    mem_free(&record->bytes);
    record->capacity = 0;
  }
  p->kept_bytes += record->capacity;
  record->next_free = p->free_records;
  p->free_records = record;
  atomic_fetch_sub(&p->n_used, 1);
  pthread_mutex_unlock(&p->mutex);
}

size_t reply_pool_n_used(const struct reply_pool *p)
{
  return atomic_load(&p->n_used);
}

static struct span append(uint8_t **end, struct span from)
{
  uint8_t *begin = *end;

  if (from.n) {
    memcpy(begin, from.p, from.n);
    *end += from.n;
  }
  return span_of(begin, from.n);
}

static size_t bytes_of(const struct trace_headers *trace)
{
  size_t n = 0;

  for (size_t i = 0; i < TRACE_HEADERS; i++)
    n += trace->value[i].n;
  return n;
}

err_t reply_record_copy(struct reply_record *record, const struct reply_texts *texts)
{
  size_t n = texts->key.n + texts->id.n + texts->space.n + texts->head.n + bytes_of(texts->trace);

  TRY(mem_grow(n, 1, &record->capacity, &record->bytes));
  uint8_t *end = record->bytes;
  record->key = append(&end, texts->key);
  record->id = append(&end, texts->id);
  record->space = append(&end, texts->space);
  record->head = append(&end, texts->head);
  for (size_t i = 0; i < TRACE_HEADERS; i++)
    record->trace.value[i] = append(&end, texts->trace->value[i]);
  return ERR_OK;
}
