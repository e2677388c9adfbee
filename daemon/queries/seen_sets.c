/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the sets of the users who asked last: a hash table of the users, and a list in order of use. */
#include "daemon/queries/seen_sets.h"

#include <pthread.h>

#include "base/mem.h"
#include "daemon/queries/seen_set.h"

enum { BUCKETS = 1 << 14 };

/* A larger set is not kept: it would push out too many others. */
enum { LARGEST_PART = 8 };

struct seen_sets {
  struct seen *seen;
  const struct key_hash *hash;
  size_t max_bytes;
  pthread_mutex_t lock;         /* of everything below, and of the fields that change in sets */
  size_t n_bytes;               /* of the kept sets */
  struct seen_set **buckets;    /* [BUCKETS] */
  TAILQ_HEAD(, seen_set) order; /* the least recently used one first */
};

err_t seen_sets_open(struct seen *seen, const struct key_hash *hash, size_t max_bytes, struct seen_sets **out)
{
  AUTO(seen_sets_close) struct seen_sets *s = NULL;

  TRY(mem_array(1, sizeof *s, &s));
  pthread_mutex_init(&s->lock, NULL);
  TAILQ_INIT(&s->order);
  s->seen = seen;
  s->hash = hash;
  s->max_bytes = max_bytes;
  TRY(mem_array(BUCKETS, sizeof(struct seen_set *), &s->buckets));
  *out = s;
  s = NULL;
  return ERR_OK;
}

void seen_sets_close(struct seen_sets **s)
{
  struct seen_set *e;

  if (!*s)
    return;
  while ((e = TAILQ_FIRST(&(*s)->order))) {
    TAILQ_REMOVE(&(*s)->order, e, in_order);
    seen_set_close(&e);
  }
  mem_free(&(*s)->buckets);
  pthread_mutex_destroy(&(*s)->lock);
  mem_free(s);
}

/* ---- The table and the list, under the lock ---- */

/* Return the link that points to the user's set, or the last link of its bucket. */
static struct seen_set **find_link(const struct seen_sets *s, struct span user)
{
  struct seen_set **link = &s->buckets[key_hash_of(s->hash, user) % BUCKETS];

  while (*link && !span_equal((*link)->user, user))
    link = &(*link)->next_in_bucket;
  return link;
}

/* Keep a set no more. */
static struct seen_set *take(struct seen_sets *s, struct seen_set **link)
{
  struct seen_set *e = *link;

  *link = e->next_in_bucket;
  TAILQ_REMOVE(&s->order, e, in_order);
  s->n_bytes -= e->n_bytes;
  e->is_kept = false;
  return e;
}

/* The same. If nobody holds the set, it joins the list of those to be freed; else its last holder frees it. */
static void drop(struct seen_sets *s, struct seen_set **link, struct seen_set **dropped)
{
  struct seen_set *e = take(s, link);

  if (e->n_holders > 0)
    return;
  e->next_in_bucket = *dropped;
  *dropped = e;
}

static void put(struct seen_sets *s, struct seen_set *e, struct seen_set **dropped)
{
  struct seen_set **link = find_link(s, e->user);

  if (*link) /* of another worker, or of before */
    drop(s, link, dropped);
  while (s->n_bytes + e->n_bytes > s->max_bytes)
    drop(s, find_link(s, TAILQ_FIRST(&s->order)->user), dropped);
  link = find_link(s, e->user);
  e->next_in_bucket = *link;
  *link = e;
  TAILQ_INSERT_TAIL(&s->order, e, in_order);
  s->n_bytes += e->n_bytes;
  e->is_kept = true;
}

/* Find and hold the user's set. NULL: none is kept, or the user has seen something since, or an item has expired.
 *
 * outdated  the set, if the user has seen something since and nobody holds it: it is kept no more
 */
static struct seen_set *find(struct seen_sets *s, struct span user, uint64_t stamp, struct seen_set **outdated)
{
  struct seen_set **link = find_link(s, user), *e = *link;

  if (!e || seen_is_expired(s->seen, e->oldest_unix_ms))
    return NULL;
  if (e->stamp != stamp) {
    *outdated = e->n_holders == 0 ? take(s, link) : NULL;
    return NULL;
  }
  TAILQ_REMOVE(&s->order, e, in_order);
  TAILQ_INSERT_TAIL(&s->order, e, in_order);
  e->n_holders++;
  return e;
}

/* ---- Reading ---- */

static err_t make_aside(const struct seen_sets *s, const struct seen_keys *read, struct region *region,
                        const struct key_set **out)
{
  struct key_set *set;

  TRY(region_array(region, 1, sizeof *set, &set));
  TRY(key_set_init(s->hash, read->keys, read->n, region, set));
  *out = set;
  return ERR_OK;
}

static void keep(struct seen_sets *s, struct seen_set *e)
{
  struct seen_set *dropped = NULL, *next;

  pthread_mutex_lock(&s->lock);
  put(s, e, &dropped);
  pthread_mutex_unlock(&s->lock);
  for (; dropped; dropped = next) {
    next = dropped->next_in_bucket;
    seen_set_close(&dropped);
  }
}

/* Add to an outdated set what the user has seen since. Its log may be another one, or the set have no room: then the
 * set stays outdated.
 *
 * read  what was read, which may be all
 */
static err_t read_on(const struct seen_sets *s, struct seen_set **outdated, struct region *region,
                     struct seen_keys *read, struct seen_set **out)
{
  TRY(seen_read(s->seen, (*outdated)->user, (*outdated)->newest_chunk, region, read));
  if (!read->is_whole && seen_set_extend(*outdated, read)) {
    *out = *outdated;
    *outdated = NULL;
  }
  return ERR_OK;
}

/* Read what the user has seen, and keep the set. */
static err_t read_set(struct seen_sets *s, struct span user, uint64_t stamp, struct seen_set **outdated,
                      struct region *region, const struct key_set **set, struct seen_set **held)
{
  struct region_mark mark = region_mark(region);
  struct seen_keys read = { 0 };

  if (*outdated)
    TRY(read_on(s, outdated, region, &read, held));
  if (!*held && !read.is_whole)
    TRY(seen_read(s->seen, user, SEEN_WHOLE_LOG, region, &read));
  if (!*held && seen_set_bytes(user, &read) > s->max_bytes / LARGEST_PART)
    return make_aside(s, &read, region, set);
  if (!*held)
    TRY(seen_set_make(s->hash, user, &read, held));
  region_rewind(region, mark);
  (*held)->stamp = stamp;
  (*held)->n_holders = 1;
  keep(s, *held);
  *set = &(*held)->set;
  return ERR_OK;
}

err_t seen_sets_acquire(struct seen_sets *s, struct span user, struct region *region, const struct key_set **set,
                        struct seen_set **held)
{
  AUTO(seen_set_close) struct seen_set *outdated = NULL;
  uint64_t stamp = seen_stamp(s->seen, user);

  pthread_mutex_lock(&s->lock);
  *held = find(s, user, stamp, &outdated);
  pthread_mutex_unlock(&s->lock);
  if (!*held)
    return read_set(s, user, stamp, &outdated, region, set, held);
  *set = &(*held)->set;
  return ERR_OK;
}

void seen_sets_release(struct seen_sets *s, struct seen_set *held)
{
  pthread_mutex_lock(&s->lock);
  bool is_last = --held->n_holders == 0 && !held->is_kept;
  pthread_mutex_unlock(&s->lock);
  if (is_last)
    seen_set_close(&held);
}
