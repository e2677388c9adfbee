/* SPDX-License-Identifier: Apache-2.0 */
/* The simplest model of the seen store: for each user, everything that was ever recorded. It says which items a read
 * must return and which it may return. Users and items are small numbers. */
#ifndef TESTS_SUPPORT_SEEN_MODEL_H
#define TESTS_SUPPORT_SEEN_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "store/seen/seen_private.h"
#include "tests/support/assert_ok.h"

enum { SEEN_MODEL_USERS = 12, SEEN_MODEL_ITEMS = 400 };

/* An item of a user. All zeros: the user has not seen it. */
struct seen_model_item {
  uint64_t order;  /* when it was recorded last; 0: never */
  int64_t last_ms; /* the time that was recorded last */
  int64_t latest_ms;
};

struct seen_model {
  struct seen_model_item items[SEEN_MODEL_USERS][SEEN_MODEL_ITEMS];
  uint64_t order;
};

/* Users and items have lengths from one byte on; some are the beginning of others. */
static inline struct span seen_model_name(unsigned i, char name[16])
{
  return span_of(name, (size_t)snprintf(name, 16, i % 3 ? "%x" : "%u-0", i));
}

static inline void seen_model_append(struct seen_model *m, unsigned user, unsigned item, int64_t time_ms)
{
  struct seen_model_item *at = &m->items[user][item];

  at->order = ++m->order;
  at->last_ms = time_ms;
  if (time_ms > at->latest_ms)
    at->latest_ms = time_ms;
}

static inline void seen_model_forget(struct seen_model *m, unsigned user)
{
  memset(m->items[user], 0, sizeof m->items[user]);
}

/* Return how many items of the user were recorded after this one. Some may have expired since they displaced it. */
static inline size_t seen_model_n_newer(const struct seen_model *m, unsigned user, unsigned item)
{
  size_t n = 0;

  for (unsigned i = 0; i < SEEN_MODEL_ITEMS; i++)
    n += m->items[user][i].order > m->items[user][item].order;
  return n;
}

/* Has the user seen the item? */
static inline bool seen_model_has_read(struct seen_store *s, unsigned user, unsigned item)
{
  struct region region = { 0 };
  char name[16], wanted[16];
  struct seen_keys read;
  size_t i = 0;

  assert_ok(seen_store_read(s, seen_model_name(user, name), SEEN_WHOLE_LOG, &region, &read));
  while (i < read.n && !span_equal(read.keys[i], seen_model_name(item, wanted)))
    i++;
  region_fini(&region);
  return i < read.n;
}

/* Compare what a user has seen. Returns how many items the read had. */
static inline size_t seen_model_compare_user(const struct seen_model *m, struct seen_store *s, unsigned user,
                                             int64_t cutoff_ms)
{
  struct region region = { 0 };
  bool is_read[SEEN_MODEL_ITEMS] = { 0 };
  char name[16];
  struct seen_keys read;

  assert_ok(seen_store_read(s, seen_model_name(user, name), SEEN_WHOLE_LOG, &region, &read));
  for (size_t k = 0; k < read.n; k++) {
    unsigned i = 0;
    while (i < SEEN_MODEL_ITEMS && !span_equal(read.keys[k], seen_model_name(i, name)))
      i++;
    assert_true(i < SEEN_MODEL_ITEMS);
    is_read[i] = true;
  }
  for (unsigned i = 0; i < SEEN_MODEL_ITEMS; i++) {
    const struct seen_model_item *at = &m->items[user][i];
    if (is_read[i])
      assert_true(at->order > 0 && at->latest_ms >= cutoff_ms);
    else if (at->order > 0 && at->last_ms >= cutoff_ms)
      assert_true(seen_model_n_newer(m, user, i) >= s->limits.max_per_user);
  }
  region_fini(&region);
  return read.n;
}

/* Count the rows of the store, for its own counts. */
static inline err_code_t seen_model_count_rows(void *context, MDB_txn *txn)
{
  struct seen_store *s = context;
  struct seen_counts counts = { 0 };
  struct seen_chunk chunk;
  uint8_t last[SEEN_KEY_MAX] = { 0 };
  size_t n_last = 0;
  MDB_cursor *cursor;
  MDB_val key, value;

  assert_int_equal(mdb_cursor_open(txn, s->logs, &cursor), MDB_SUCCESS);
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == MDB_SUCCESS) {
    struct span user = seen_key_user(env_span(key));
    assert_true(seen_chunk_decode(env_span(value), &chunk));
    assert_true(chunk.n > 0);
    counts.n_items += chunk.n;
    counts.n_users += !span_equal(user, span_of(last, n_last));
    memcpy(last, user.p, user.n);
    n_last = user.n;
  }
  mdb_cursor_close(cursor);
  assert_int_equal(counts.n_items, s->counts.n_items);
  assert_int_equal(counts.n_users, s->counts.n_users);
  return ERR_OK;
}

static inline void seen_model_compare(const struct seen_model *m, struct seen_store *s)
{
  int64_t cutoff_ms = seen_store_expired_before(s, s->clock_unix_ms());
  uint64_t max = s->limits.max_per_user;

  for (unsigned user = 0; user < SEEN_MODEL_USERS; user++)
    assert_true(seen_model_compare_user(m, s, user, cutoff_ms) <= max + max / 8);
  assert_ok(env_read(s->env, seen_model_count_rows, s));
}

#endif
