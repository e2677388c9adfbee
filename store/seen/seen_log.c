/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, appending to, compacting and deleting the log of one user. */
#include "store/seen/seen_log.h"

#include <assert.h>
#include <endian.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { NUMBER_BYTES = sizeof(uint64_t) };

/* A log has fewer chunks than numbers lie between two transactions. */
enum { LOG_CHUNKS_BITS = 24 };

/* Make the key of a user's chunk. The chunks of a user are in order of their numbers. */
static void make_key(struct span user, uint64_t chunk, struct seen_key *out)
{
  uint64_t number = htobe64(chunk);

  assert(user.n >= 1 && user.n <= SEEN_USER_MAX);
  out->bytes[0] = (uint8_t)(user.n - 1);
  memcpy(out->bytes + 1, user.p, user.n);
  memcpy(out->bytes + 1 + user.n, &number, NUMBER_BYTES);
  out->n = 1 + user.n + NUMBER_BYTES;
}

struct span seen_key_user(struct span key)
{
  if (key.n < 2 + NUMBER_BYTES || key.n != 2 + (size_t)key.p[0] + NUMBER_BYTES)
    return (struct span){ 0 };
  return span_of(key.p, key.n - NUMBER_BYTES);
}

static uint64_t number_of(struct span key)
{
  uint64_t number;

  memcpy(&number, key.p + key.n - NUMBER_BYTES, NUMBER_BYTES);
  return be64toh(number);
}

static err_t fail_damaged(const struct seen_log *log)
{
  FAIL(ERR_STORE_CORRUPT, "store %s is damaged: what a user has seen: " ENV_REMEDY, log->env->path);
}

/* ---- The rows of a user ---- */

/* A walk over the rows of a user. */
struct rows {
  struct seen_log *log;
  struct seen_key first; /* the lowest key that the user's rows can have */
  MDB_cursor *cursor;
  MDB_val key;
  MDB_val value;
};

static void rows_end(struct rows *r)
{
  env_close_cursor(&r->cursor);
}

static err_t rows_open(struct seen_log *log, struct span user, struct rows *out)
{
  out->log = log;
  make_key(user, 0, &out->first);
  return env_verify(log->env, mdb_cursor_open(log->txn, log->table, &out->cursor), "read what a user has seen");
}

/* Did the move of the cursor, which returned rc, arrive at a row of the user? */
static err_t arrive(struct rows *r, int rc, bool *is_there)
{
  struct span user = seen_key_user(span_of(r->first.bytes, r->first.n));

  *is_there = false;
  if (rc == MDB_NOTFOUND)
    return ERR_OK;
  TRY(env_verify(r->log->env, rc, "read what a user has seen"));
  *is_there = span_equal(seen_key_user(env_span(r->key)), user);
  return ERR_OK;
}

/* Go to the oldest row. */
static err_t rows_first(struct rows *r, bool *is_there)
{
  r->key = env_value(span_of(r->first.bytes, r->first.n));
  return arrive(r, mdb_cursor_get(r->cursor, &r->key, &r->value, MDB_SET_RANGE), is_there);
}

static err_t rows_next(struct rows *r, bool *is_there)
{
  return arrive(r, mdb_cursor_get(r->cursor, &r->key, &r->value, MDB_NEXT), is_there);
}

/* Go to the newest row: the one before the first row that is not the user's. */
static err_t rows_last(struct rows *r, struct span user, bool *is_there)
{
  struct seen_key last;

  make_key(user, UINT64_MAX, &last);
  r->key = env_value(span_of(last.bytes, last.n));
  int rc = mdb_cursor_get(r->cursor, &r->key, &r->value, MDB_SET_RANGE);
  if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND)
    return arrive(r, rc, is_there);
  rc = mdb_cursor_get(r->cursor, &r->key, &r->value, rc == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
  return arrive(r, rc, is_there);
}

/* Open the rows from a chunk on; all of them, if there is no such chunk. */
static err_t rows_open_from(struct seen_log *log, struct span user, uint64_t first_chunk, struct rows *out,
                            bool *is_whole)
{
  bool is_there = false;

  TRY(rows_open(log, user, out));
  if (first_chunk != SEEN_WHOLE_LOG) {
    make_key(user, first_chunk, &out->first);
    TRY(rows_first(out, &is_there));
  }
  *is_whole = !is_there || number_of(env_span(out->key)) != first_chunk;
  if (*is_whole)
    make_key(user, 0, &out->first);
  return ERR_OK;
}

/* ---- The whole log ---- */

/* All items of a log, oldest first, copied to the scratch region. */
struct history {
  struct seen_item *items; /* [n] */
  size_t n;
};

/* Count the items of the log at most, and make room for their bytes. */
static err_t reserve(struct rows *r, uint8_t **bytes, size_t *n_items)
{
  size_t n_rows = 0, n_bytes = 0;
  bool is_there;

  TRY(rows_first(r, &is_there));
  while (is_there) {
    n_rows++;
    n_bytes += r->value.mv_size;
    TRY(rows_next(r, &is_there));
  }
  *n_items = n_rows * SEEN_CHUNK_ITEMS;
  return region_array(r->log->scratch, n_bytes, 1, bytes);
}

/* Copy the chunk of a row, because the transaction ends before its items are used. Moves `bytes` past the copy. */
static err_t copy_chunk(const struct rows *r, uint8_t **bytes, struct seen_chunk *out)
{
  memcpy(*bytes, r->value.mv_data, r->value.mv_size);
  if (!seen_chunk_decode(span_of(*bytes, r->value.mv_size), out))
    return fail_damaged(r->log);
  *bytes += r->value.mv_size;
  return ERR_OK;
}

static err_t load_history(struct seen_log *log, struct span user, struct history *out)
{
  AUTO(rows_end) struct rows r = { 0 };
  struct seen_chunk chunk;
  uint8_t *bytes;
  size_t n_max;
  bool is_there;

  *out = (struct history){ 0 };
  TRY(rows_open(log, user, &r));
  TRY(reserve(&r, &bytes, &n_max));
  TRY(region_array(log->scratch, n_max, sizeof *out->items, &out->items));
  TRY(rows_first(&r, &is_there));
  while (is_there) {
    TRY(copy_chunk(&r, &bytes, &chunk));
    memcpy(out->items + out->n, chunk.items, chunk.n * sizeof *out->items);
    out->n += chunk.n;
    TRY(rows_next(&r, &is_there));
  }
  return ERR_OK;
}

/* Add the keys of a chunk that are not expired. */
static void add_keys(const struct seen_log *log, const struct seen_chunk *chunk, struct seen_keys *out)
{
  for (size_t i = 0; i < chunk->n; i++) {
    int64_t time_unix_ms = chunk->items[i].time_unix_ms;
    if (time_unix_ms < log->expired_before_unix_ms)
      continue;
    out->keys[out->n++] = chunk->items[i].key;
    if (time_unix_ms < out->oldest_unix_ms)
      out->oldest_unix_ms = time_unix_ms;
  }
}

err_t seen_log_read(struct seen_log *log, struct span user, uint64_t first_chunk, struct seen_keys *out)
{
  AUTO(rows_end) struct rows r = { 0 };
  struct seen_chunk chunk;
  uint8_t *bytes;
  size_t n_max;
  bool is_there;

  *out = (struct seen_keys){ .oldest_unix_ms = INT64_MAX };
  TRY(rows_open_from(log, user, first_chunk, &r, &out->is_whole));
  TRY(reserve(&r, &bytes, &n_max));
  TRY(region_array(log->scratch, n_max, sizeof *out->keys, &out->keys));
  TRY(rows_first(&r, &is_there));
  while (is_there) {
    TRY(copy_chunk(&r, &bytes, &chunk));
    add_keys(log, &chunk, out);
    out->newest_chunk = number_of(env_span(r.key));
    TRY(rows_next(&r, &is_there));
  }
  return ERR_OK;
}

static err_t delete_row(struct rows *r)
{
  size_t n;
  int64_t newest_unix_ms;

  if (!seen_chunk_decode_head(env_span(r->value), &n, &newest_unix_ms))
    return fail_damaged(r->log);
  r->log->counts->n_items -= n;
  return env_verify(r->log->env, mdb_cursor_del(r->cursor, 0), "delete what a user has seen");
}

err_t seen_log_delete(struct seen_log *log, struct span user)
{
  AUTO(rows_end) struct rows r = { 0 };
  bool is_there;

  TRY(rows_open(log, user, &r));
  TRY(rows_first(&r, &is_there));
  log->counts->n_users -= is_there;
  while (is_there) {
    TRY(delete_row(&r));
    TRY(rows_first(&r, &is_there));
  }
  return ERR_OK;
}

/* ---- The end of the log ---- */

/* The newest chunk while items are added. */
struct tail {
  struct seen_log *log;
  struct span user;
  bool is_first; /* no row of the user is stored yet */
  uint64_t number;
  struct seen_chunk chunk;
};

/* Return the number of the first chunk that a transaction begins. */
static uint64_t first_number(const struct seen_log *log)
{
  return mdb_txn_id(log->txn) << LOG_CHUNKS_BITS;
}

/* The sweep may have freed a chunk behind the newest one: its number is not given again. */
static uint64_t next_number(const struct tail *t)
{
  uint64_t first = first_number(t->log);

  return t->number < first ? first : t->number + 1;
}

/* Copy the newest chunk: LMDB moves its rows when one is written. */
static err_t load_chunk(struct tail *t, const struct rows *r)
{
  struct span copy;

  TRY(region_copy(t->log->scratch, env_span(r->value), &copy));
  if (!seen_chunk_decode(copy, &t->chunk))
    return fail_damaged(t->log);
  t->number = number_of(env_span(r->key));
  return ERR_OK;
}

static err_t load_tail(struct tail *t)
{
  AUTO(rows_end) struct rows r = { 0 };
  bool is_there;

  TRY(rows_open(t->log, t->user, &r));
  TRY(rows_last(&r, t->user, &is_there));
  t->is_first = !is_there;
  t->number = first_number(t->log);
  return is_there ? load_chunk(t, &r) : ERR_OK;
}

static err_t write_tail(struct tail *t)
{
  uint8_t bytes[SEEN_CHUNK_BYTES];
  struct seen_key key;

  if (t->chunk.n == 0)
    return ERR_OK;
  make_key(t->user, t->number, &key);
  MDB_val name = env_value(span_of(key.bytes, key.n));
  MDB_val value = env_value(span_of(bytes, seen_chunk_encode(&t->chunk, bytes)));
  t->log->counts->n_users += t->is_first;
  t->is_first = false;
  return env_verify(t->log->env, mdb_put(t->log->txn, t->log->table, &name, &value, 0), "write what a user has seen");
}

static uint64_t count_of(const struct tail *t)
{
  return t->chunk.n_before + t->chunk.n;
}

static err_t push(struct tail *t, struct seen_item item)
{
  if (!seen_chunk_has_room(&t->chunk, item.key)) {
    TRY(write_tail(t));
    t->chunk = (struct seen_chunk){ .n_before = count_of(t) };
    t->number = next_number(t);
  }
  seen_chunk_push(&t->chunk, item);
  t->log->counts->n_items++;
  return ERR_OK;
}

/* Add an item that was seen. If the newest chunk has it, it moves to the end. */
static err_t push_seen(struct tail *t, struct seen_item item)
{
  struct seen_item before;

  if (seen_chunk_take(&t->chunk, item.key, &before)) {
    t->log->counts->n_items--;
    if (before.time_unix_ms > item.time_unix_ms)
      item.time_unix_ms = before.time_unix_ms;
  }
  return push(t, item);
}

/* ---- Compacting ---- */

/* A set of items, by their keys: a hash table of places in `items`. */
struct item_set {
  struct seen_item *items;
  uint32_t *places; /* [mask + 1] index in items plus 1; 0: free */
  size_t mask;
};

static err_t open_set(struct region *r, struct history *history, struct item_set *out)
{
  size_t n = 2;

  while (n < 2 * history->n)
    n *= 2;
  *out = (struct item_set){ .items = history->items, .mask = n - 1 };
  return region_array(r, n, sizeof *out->places, &out->places);
}

/* Find the place of item i's key: it is free, or has an item with the same key. */
static uint32_t *find_place(struct item_set *set, size_t i)
{
  struct span key = set->items[i].key;
  size_t at = XXH3_64bits(key.p, key.n) & set->mask;

  while (set->places[at] && !span_equal(set->items[set->places[at] - 1].key, key))
    at = (at + 1) & set->mask;
  return &set->places[at];
}

/* Keep each item once, where it was recorded last and with the latest of its times, and mark the others by an empty
 * key. */
static err_t drop_repeated(struct seen_log *log, struct history *history)
{
  struct item_set set;

  TRY(open_set(log->scratch, history, &set));
  for (size_t i = history->n; i-- > 0;) {
    struct seen_item *item = &history->items[i];
    uint32_t *place = find_place(&set, i);
    if (*place == 0) {
      *place = (uint32_t)i + 1;
      continue;
    }
    struct seen_item *kept = &history->items[*place - 1];
    if (item->time_unix_ms > kept->time_unix_ms)
      kept->time_unix_ms = item->time_unix_ms;
    item->key = (struct span){ 0 };
  }
  return ERR_OK;
}

static bool is_kept(const struct seen_log *log, const struct seen_item *item)
{
  return item->key.n > 0 && item->time_unix_ms >= log->expired_before_unix_ms;
}

/* Return the index of the first item that is kept: max_items from there on are. */
static size_t find_first_kept(const struct seen_log *log, const struct history *history)
{
  size_t i = history->n;

  for (uint64_t n = 0; i > 0 && n < log->max_items; i--)
    n += is_kept(log, &history->items[i - 1]);
  return i;
}

/* The chunks of the new log have numbers above those of the old one. */
static err_t compact(struct seen_log *log, const struct tail *old)
{
  struct tail t = { .log = log, .user = old->user, .is_first = true, .number = next_number(old) };
  struct history history;

  TRY(load_history(log, old->user, &history));
  TRY(drop_repeated(log, &history));
  TRY(seen_log_delete(log, old->user));
  for (size_t i = find_first_kept(log, &history); i < history.n; i++) {
    if (is_kept(log, &history.items[i]))
      TRY(push(&t, history.items[i]));
  }
  return write_tail(&t);
}

err_t seen_log_append(struct seen_log *log, const struct seen_change *change)
{
  struct tail t = { .log = log, .user = change->user };
  struct seen_item item = { .time_unix_ms = change->time_unix_ms };

  if (item.time_unix_ms > log->now_unix_ms)
    item.time_unix_ms = log->now_unix_ms;
  if (item.time_unix_ms < log->expired_before_unix_ms)
    return ERR_OK;
  TRY(load_tail(&t));
  for (size_t i = 0; i < change->n_items; i++) {
    item.key = change->items[i];
    TRY(push_seen(&t, item));
  }
  TRY(write_tail(&t));
  return count_of(&t) > log->max_items + log->max_items / 8 ? compact(log, &t) : ERR_OK;
}
