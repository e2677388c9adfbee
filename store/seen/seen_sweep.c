/* SPDX-License-Identifier: Apache-2.0 */
/* The sweep of the seen store: it frees chunks all of whose items are expired, also of users who never come back. */
#include "store/seen/seen_private.h"

struct sweep {
  struct seen_store *store;
  MDB_txn *txn;
  size_t max;
  int64_t expired_before_unix_ms;
  struct seen_counts counts;
  struct seen_key next; /* the first row that was not looked at; n = 0: there is none */
};

static err_t open_cursor(struct sweep *w, MDB_cursor **out)
{
  return env_verify(w->store->env, mdb_cursor_open(w->txn, w->store->logs, out), "sweep what users have seen");
}

/* Has the user of this row's key no rows any more? */
static err_t note_empty(struct sweep *w, struct span user)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key = env_value(user), value;

  TRY(open_cursor(w, &cursor));
  int rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); /* the user's part is below all of the user's keys */
  if (rc != MDB_NOTFOUND)
    TRY(env_verify(w->store->env, rc, "sweep what users have seen"));
  w->counts.n_users -= rc == MDB_NOTFOUND || !span_equal(seen_key_user(env_span(key)), user);
  return ERR_OK;
}

static err_t fail_damaged(const struct sweep *w)
{
  FAIL(ERR_STORE_CORRUPT, "store %s is damaged: what a user has seen: " ENV_REMEDY, w->store->env->path);
}

static err_t delete_row(struct sweep *w, const struct seen_key *name, size_t n_items)
{
  MDB_val key = env_value(span_of(name->bytes, name->n));

  TRY(env_verify(w->store->env, mdb_del(w->txn, w->store->logs, &key, NULL), "free what a user has seen"));
  w->counts.n_items -= n_items;
  return note_empty(w, seen_key_user(span_of(name->bytes, name->n)));
}

static err_t look_at(struct sweep *w, const struct seen_key *name, struct span value)
{
  size_t n_items;
  int64_t newest_unix_ms;

  if (!seen_chunk_decode_head(value, &n_items, &newest_unix_ms))
    return fail_damaged(w);
  return newest_unix_ms < w->expired_before_unix_ms ? delete_row(w, name, n_items) : ERR_OK;
}

/* Find the first row whose key is not below w->next. Copies its key there; n = 0: there is none. */
static err_t find_next(struct sweep *w, MDB_val *value)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key = env_value(span_of(w->next.bytes, w->next.n));

  TRY(open_cursor(w, &cursor));
  int rc = mdb_cursor_get(cursor, &key, value, w->next.n ? MDB_SET_RANGE : MDB_FIRST);
  w->next.n = 0;
  if (rc == MDB_NOTFOUND)
    return ERR_OK;
  TRY(env_verify(w->store->env, rc, "sweep what users have seen"));
  if (seen_key_user(env_span(key)).n == 0)
    return fail_damaged(w);
  memcpy(w->next.bytes, key.mv_data, key.mv_size);
  w->next.n = key.mv_size;
  return ERR_OK;
}

/* Make the key that follows this one directly. */
static void move_past(struct seen_key *key)
{
  size_t i = key->n;

  while (i > 0 && ++key->bytes[--i] == 0) {
  }
}

static err_code_t sweep(void *context, MDB_txn *txn)
{
  struct sweep *w = context;
  MDB_val value;

  w->txn = txn;
  w->counts = w->store->counts;
  w->next = w->store->next_swept;
  TRY(find_next(w, &value));
  for (size_t i = 0; i < w->max && w->next.n > 0; i++) {
    struct seen_key name = w->next;
    TRY(look_at(w, &name, env_span(value)));
    move_past(&w->next);
    TRY(find_next(w, &value));
  }
  return seen_store_put_counts(w->store, txn, &w->counts);
}

err_t seen_store_sweep(struct seen_store *s, size_t max, bool *is_round_done)
{
  struct sweep w = { .store = s, .max = max };

  w.expired_before_unix_ms = seen_store_expired_before(s, s->clock_unix_ms());
  TRY(seen_store_write(s, sweep, &w));
  seen_store_publish(s, &w.counts);
  s->next_swept = w.next;
  *is_round_done = w.next.n == 0;
  return ERR_OK;
}
