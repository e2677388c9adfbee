/* SPDX-License-Identifier: Apache-2.0 */
/* Making, extending and closing a set. */
#include "daemon/queries/seen_set.h"

#include "base/mem.h"
#include "base/size.h"

/* What a region rounds up, for each of the five arrays of a set. */
enum { SLACK_BYTES = 5 * 16 };

/* What the arrays of keys and of their bytes have room for. */
struct room {
  size_t keys;
  size_t key_bytes;
};

static struct room room_for(const struct seen_keys *read)
{
  size_t more = read->n / 8 + 16, key_bytes = 0;

  for (size_t i = 0; i < read->n; i++)
    key_bytes += read->keys[i].n;
  return (struct room){ read->n + more, key_bytes + more * (key_bytes / size_max(read->n, 1) + 1) };
}

static size_t bytes_of(const struct room *room, struct span user, size_t n)
{
  return sizeof(struct seen_set) + key_set_bytes(n) + room->keys * sizeof(struct span) + room->key_bytes + user.n +
         SLACK_BYTES;
}

size_t seen_set_bytes(struct span user, const struct seen_keys *read)
{
  struct room room = room_for(read);

  return bytes_of(&room, user, read->n);
}

/* Copy a key next to those before it. */
static void copy_key(struct seen_set *e, size_t i, struct span key)
{
  memcpy(e->unused, key.p, key.n);
  e->keys[i] = span_of(e->unused, key.n);
  e->unused += key.n;
  e->n_unused -= key.n;
}

static err_t copy_keys(struct seen_set *e, const struct room *room, const struct seen_keys *read)
{
  TRY(region_array(&e->region, room->keys, sizeof *e->keys, &e->keys));
  TRY(region_array(&e->region, room->key_bytes, 1, &e->unused));
  e->max_keys = room->keys;
  e->n_unused = room->key_bytes;
  for (size_t i = 0; i < read->n; i++)
    copy_key(e, i, read->keys[i]);
  return ERR_OK;
}

err_t seen_set_make(const struct key_hash *hash, struct span user, const struct seen_keys *read, struct seen_set **out)
{
  AUTO(seen_set_close) struct seen_set *e = NULL;
  struct room room = room_for(read);

  TRY(mem_array(1, sizeof *e, &e));
  TRY(region_reserve(&e->region, bytes_of(&room, user, read->n) - sizeof *e)); /* one block */
  TRY(copy_keys(e, &room, read));
  TRY(key_set_init(hash, e->keys, read->n, &e->region, &e->set));
  TRY(region_copy(&e->region, user, &e->user));
  e->n_bytes = sizeof *e + region_bytes(&e->region);
  e->newest_chunk = read->newest_chunk;
  e->oldest_unix_ms = read->oldest_unix_ms;
  *out = e;
  e = NULL;
  return ERR_OK;
}

static bool add(struct seen_set *e, struct span key)
{
  if (key_set_has(&e->set, key))
    return true;
  if (e->set.n == e->max_keys || e->n_unused < key.n)
    return false;
  copy_key(e, e->set.n, key);
  key_set_grow(&e->set);
  return true;
}

bool seen_set_extend(struct seen_set *e, const struct seen_keys *read)
{
  for (size_t i = 0; i < read->n; i++) {
    if (!add(e, read->keys[i]))
      return false;
  }
  e->newest_chunk = read->newest_chunk;
  if (read->oldest_unix_ms < e->oldest_unix_ms)
    e->oldest_unix_ms = read->oldest_unix_ms;
  return true;
}

void seen_set_close(struct seen_set **e)
{
  if (!*e)
    return;
  region_fini(&(*e)->region);
  mem_free(e);
}
