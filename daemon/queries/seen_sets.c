/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the sets of the users who asked last: finding, replacing and holding them. */
#include "daemon/queries/seen_sets.h"

#include <pthread.h>

#include "base/mem.h"

struct seen_set {
  struct key_set set;
  struct region region; /* of the set */
  size_t n_holders;     /* queries that hold it */
  bool is_known;        /* the fields below are valid, and the set can be found */
  uint8_t user[SEEN_USER_MAX];
  size_t n_user;
  uint64_t stamp;         /* of the user, before what it has seen was read */
  int64_t oldest_unix_ms; /* of the items */
  uint64_t last_use;
};

struct seen_sets {
  pthread_mutex_t lock; /* of the sets, except what only the one who fills a set can see */
  struct seen *seen;
  const struct key_hash *hash;
  uint64_t n_uses;
  struct seen_set sets[SEEN_SETS_KEPT];
};

err_t seen_sets_open(struct seen *seen, const struct key_hash *hash, struct seen_sets **out)
{
  struct seen_sets *s;

  TRY(mem_array(1, sizeof *s, &s));
  pthread_mutex_init(&s->lock, NULL);
  s->seen = seen;
  s->hash = hash;
  *out = s;
  return ERR_OK;
}

void seen_sets_close(struct seen_sets **s)
{
  if (!*s)
    return;
  for (size_t i = 0; i < SEEN_SETS_KEPT; i++)
    region_fini(&(*s)->sets[i].region);
  pthread_mutex_destroy(&(*s)->lock);
  mem_free(s);
}

static bool is_current(const struct seen_sets *s, const struct seen_set *e, struct span user, uint64_t stamp)
{
  return e->is_known && e->stamp == stamp && span_equal(span_of(e->user, e->n_user), user) &&
         !seen_is_expired(s->seen, e->oldest_unix_ms);
}

static struct seen_set *find(struct seen_sets *s, struct span user, uint64_t stamp)
{
  for (size_t i = 0; i < SEEN_SETS_KEPT; i++) {
    if (is_current(s, &s->sets[i], user, stamp))
      return &s->sets[i];
  }
  return NULL;
}

/* Choose the set to replace: one that cannot be found, or else the least recently used one. NULL: all are held. */
static struct seen_set *choose(struct seen_sets *s)
{
  struct seen_set *best = NULL;

  for (size_t i = 0; i < SEEN_SETS_KEPT; i++) {
    struct seen_set *e = &s->sets[i];
    if (e->n_holders == 0 && (!best || (best->is_known && (!e->is_known || e->last_use < best->last_use))))
      best = e;
  }
  if (best)
    best->is_known = false;
  return best;
}

/* Find or claim a set, and hold it. */
static struct seen_set *hold(struct seen_sets *s, struct span user, uint64_t stamp, bool *is_found)
{
  pthread_mutex_lock(&s->lock);
  struct seen_set *e = find(s, user, stamp);
  *is_found = e;
  e = e ? e : choose(s);
  if (e) {
    e->n_holders++;
    e->last_use = ++s->n_uses;
  }
  pthread_mutex_unlock(&s->lock);
  return e;
}

static err_t read_set(const struct seen_sets *s, struct span user, struct region *region, struct key_set *out,
                      int64_t *oldest_unix_ms)
{
  struct span *keys;
  size_t n;

  TRY(seen_read(s->seen, user, region, &keys, &n, oldest_unix_ms));
  return key_set_init(s->hash, keys, n, region, out);
}

/* Fill a set that only the caller can see. */
static err_t fill(struct seen_sets *s, struct span user, uint64_t stamp, struct seen_set *e)
{
  region_trim(&e->region, SEEN_SETS_BYTES_EACH);
  TRY(read_set(s, user, &e->region, &e->set, &e->oldest_unix_ms));
  memcpy(e->user, user.p, user.n);
  e->n_user = user.n;
  e->stamp = stamp;
  pthread_mutex_lock(&s->lock);
  e->is_known = region_bytes(&e->region) <= SEEN_SETS_BYTES_EACH;
  pthread_mutex_unlock(&s->lock);
  return ERR_OK;
}

static err_t read_aside(const struct seen_sets *s, struct span user, struct region *region, const struct key_set **out)
{
  struct key_set *set;
  int64_t oldest_unix_ms;

  TRY(region_array(region, 1, sizeof *set, &set));
  TRY(read_set(s, user, region, set, &oldest_unix_ms));
  *out = set;
  return ERR_OK;
}

err_t seen_sets_acquire(struct seen_sets *s, struct span user, struct region *region, const struct key_set **set,
                        struct seen_set **held)
{
  uint64_t stamp = seen_stamp(s->seen, user);
  bool is_found;
  struct seen_set *e = hold(s, user, stamp, &is_found);

  *held = NULL;
  if (!e)
    return read_aside(s, user, region, set);
  err_code_t err = is_found ? ERR_OK : fill(s, user, stamp, e);
  if (err != ERR_OK) {
    seen_sets_release(s, e);
    return err;
  }
  *set = &e->set;
  *held = e;
  return ERR_OK;
}

void seen_sets_release(struct seen_sets *s, struct seen_set *held)
{
  pthread_mutex_lock(&s->lock);
  held->n_holders--;
  pthread_mutex_unlock(&s->lock);
}
