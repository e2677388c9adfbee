/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array: there are few shards, and they seldom change. */
#include "daemon/merge/shards_heard.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"

struct shards_heard {
  pthread_mutex_t lock;
  struct shard_heard *rows; /* [n], in order of layout and shard */
  size_t n, capacity;
};

err_t shards_heard_open(struct shards_heard **out)
{
  TRY(mem_array(1, sizeof **out, out));
  pthread_mutex_init(&(*out)->lock, NULL);
  return ERR_OK;
}

void shards_heard_close(struct shards_heard **s)
{
  if (!*s)
    return;
  pthread_mutex_destroy(&(*s)->lock);
  mem_free(&(*s)->rows);
  mem_free(s);
}

static bool is_before(const struct shard_heard *row, uint32_t shard, uint32_t n_shards)
{
  return row->n_shards != n_shards ? row->n_shards < n_shards : row->shard < shard;
}

/* Return the index where a shard is or belongs. */
static size_t find_row(const struct shards_heard *s, uint32_t shard, uint32_t n_shards)
{
  size_t low = 0, high = s->n;

  while (low < high) {
    size_t middle = (low + high) / 2;
    if (is_before(&s->rows[middle], shard, n_shards))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool insert_row(struct shards_heard *s, size_t at, uint32_t shard, uint32_t n_shards)
{
  if (s->n >= SHARDS_HEARD_MAX || mem_grow(s->n + 1, sizeof *s->rows, &s->capacity, &s->rows) != ERR_OK)
    return false;
  memmove(&s->rows[at + 1], &s->rows[at], (s->n - at) * sizeof *s->rows);
  s->rows[at] = (struct shard_heard){ .shard = shard, .n_shards = n_shards };
  s->n++;
  return true;
}

void shards_heard_note(struct shards_heard *s, uint32_t shard, uint32_t n_shards, int64_t now_ns)
{
  pthread_mutex_lock(&s->lock);
  size_t at = find_row(s, shard, n_shards);
  bool is_there = at < s->n && s->rows[at].shard == shard && s->rows[at].n_shards == n_shards;
  if (is_there || insert_row(s, at, shard, n_shards))
    s->rows[at].heard_ns = now_ns;
  pthread_mutex_unlock(&s->lock);
}

void shards_heard_forget(struct shards_heard *s, int64_t before_ns)
{
  size_t n = 0;

  pthread_mutex_lock(&s->lock);
  for (size_t i = 0; i < s->n; i++) {
    if (s->rows[i].heard_ns >= before_ns)
      s->rows[n++] = s->rows[i];
  }
  s->n = n;
  pthread_mutex_unlock(&s->lock);
}

size_t shards_heard_list(struct shards_heard *s, struct shard_heard *out, size_t capacity)
{
  pthread_mutex_lock(&s->lock);
  size_t n = s->n < capacity ? s->n : capacity;
  if (n > 0)
    memcpy(out, s->rows, n * sizeof *out);
  pthread_mutex_unlock(&s->lock);
  return n;
}
