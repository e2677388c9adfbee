/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the sets of the users who asked last: a hash table of the users, and a list in order of use. */
#include "daemon/queries/seen_sets.h"

#include <pthread.h>
#include <sys/queue.h>

#include "base/mem.h"

enum { BUCKETS = 1 << 14 };

/* A larger set is not kept: it would push out too many others. */
enum { LARGEST_PART = 8 };

/* What a region rounds up, for each of the five arrays of a set. */
enum { SLACK_BYTES = 5 * 16 };

struct seen_set {
  struct key_set set;
  struct span user;
  struct region region; /* of the two */
  size_t n_bytes;
  uint64_t stamp;         /* of the user, before what it has seen was read */
  int64_t oldest_unix_ms; /* of the items */
  size_t n_holders;       /* queries that hold it */
  bool is_kept;           /* it is in the table and in the list */
  struct seen_set *next_in_bucket;
  TAILQ_ENTRY(seen_set) in_order;
};

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

static void close_set(struct seen_set **e)
{
  if (!*e)
    return;
  region_fini(&(*e)->region);
  mem_free(e);
}

void seen_sets_close(struct seen_sets **s)
{
  struct seen_set *e;

  if (!*s)
    return;
  while ((e = TAILQ_FIRST(&(*s)->order))) {
    TAILQ_REMOVE(&(*s)->order, e, in_order);
    close_set(&e);
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

/* Keep a set no more. If nobody holds it, it joins the list of those to be freed; else its last holder frees it. */
static void drop(struct seen_sets *s, struct seen_set **link, struct seen_set **dropped)
{
  struct seen_set *e = *link;

  *link = e->next_in_bucket;
  TAILQ_REMOVE(&s->order, e, in_order);
  s->n_bytes -= e->n_bytes;
  e->is_kept = false;
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

static bool is_current(const struct seen_sets *s, const struct seen_set *e, uint64_t stamp)
{
  return e->stamp == stamp && !seen_is_expired(s->seen, e->oldest_unix_ms);
}

/* Find and hold the user's set. NULL: none is kept, or what the user has seen has changed. */
static struct seen_set *find(struct seen_sets *s, struct span user, uint64_t stamp)
{
  struct seen_set *e = *find_link(s, user);

  if (!e || !is_current(s, e, stamp))
    return NULL;
  TAILQ_REMOVE(&s->order, e, in_order);
  TAILQ_INSERT_TAIL(&s->order, e, in_order);
  e->n_holders++;
  return e;
}

/* ---- Making a set ---- */

/* What seen_read() found. */
struct log {
  struct span user;
  struct seen_keys read;
  size_t key_bytes; /* of all keys */
  uint64_t stamp;
};

static err_t read_log(const struct seen_sets *s, struct span user, uint64_t stamp, struct region *region,
                      struct log *out)
{
  *out = (struct log){ .user = user, .stamp = stamp };
  TRY(seen_read(s->seen, user, SEEN_WHOLE_LOG, region, &out->read));
  for (size_t i = 0; i < out->read.n; i++)
    out->key_bytes += out->read.keys[i].n;
  return ERR_OK;
}

/* Return what a set takes that is kept. */
static size_t bytes_of(const struct log *log)
{
  return sizeof(struct seen_set) + key_set_bytes(log->read.n) + log->read.n * sizeof *log->read.keys + log->key_bytes +
         log->user.n + SLACK_BYTES;
}

/* Copy the keys next to each other. */
static err_t copy_keys(const struct log *log, struct region *region, const struct span **out)
{
  struct span *keys;
  uint8_t *bytes;

  TRY(region_array(region, log->read.n, sizeof *keys, &keys));
  TRY(region_array(region, log->key_bytes, 1, &bytes));
  for (size_t i = 0; i < log->read.n; i++) {
    keys[i] = span_of(bytes, log->read.keys[i].n);
    memcpy(bytes, log->read.keys[i].p, log->read.keys[i].n);
    bytes += log->read.keys[i].n;
  }
  *out = keys;
  return ERR_OK;
}

/* Make a set in memory of its own, in one block. */
static err_t make(const struct seen_sets *s, const struct log *log, struct seen_set **out)
{
  AUTO(close_set) struct seen_set *e = NULL;
  const struct span *keys;

  TRY(mem_array(1, sizeof *e, &e));
  TRY(region_reserve(&e->region, bytes_of(log) - sizeof *e));
  TRY(copy_keys(log, &e->region, &keys));
  TRY(key_set_init(s->hash, keys, log->read.n, &e->region, &e->set));
  TRY(region_copy(&e->region, log->user, &e->user));
  e->n_bytes = sizeof *e + region_bytes(&e->region);
  e->stamp = log->stamp;
  e->oldest_unix_ms = log->read.oldest_unix_ms;
  e->n_holders = 1;
  *out = e;
  e = NULL;
  return ERR_OK;
}

static err_t make_aside(const struct seen_sets *s, const struct log *log, struct region *region,
                        const struct key_set **out)
{
  struct key_set *set;

  TRY(region_array(region, 1, sizeof *set, &set));
  TRY(key_set_init(s->hash, log->read.keys, log->read.n, region, set));
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
    close_set(&dropped);
  }
}

/* Read what the user has seen, and keep the set. */
static err_t read_set(struct seen_sets *s, struct span user, uint64_t stamp, struct region *region,
                      const struct key_set **set, struct seen_set **held)
{
  struct region_mark mark = region_mark(region);
  struct log log;

  TRY(read_log(s, user, stamp, region, &log));
  if (bytes_of(&log) > s->max_bytes / LARGEST_PART)
    return make_aside(s, &log, region, set);
  TRY(make(s, &log, held));
  region_rewind(region, mark);
  keep(s, *held);
  *set = &(*held)->set;
  return ERR_OK;
}

err_t seen_sets_acquire(struct seen_sets *s, struct span user, struct region *region, const struct key_set **set,
                        struct seen_set **held)
{
  uint64_t stamp = seen_stamp(s->seen, user);

  pthread_mutex_lock(&s->lock);
  *held = find(s, user, stamp);
  pthread_mutex_unlock(&s->lock);
  if (!*held)
    return read_set(s, user, stamp, region, set, held);
  *set = &(*held)->set;
  return ERR_OK;
}

void seen_sets_release(struct seen_sets *s, struct seen_set *held)
{
  pthread_mutex_lock(&s->lock);
  bool is_last = --held->n_holders == 0 && !held->is_kept;
  pthread_mutex_unlock(&s->lock);
  if (is_last)
    close_set(&held);
}
