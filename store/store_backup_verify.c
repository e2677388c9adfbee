/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying a store, which is opened without writing to it. */
#include "store/store_backup.h"

#include <inttypes.h>

#include "store/models/model_files.h"
#include "store/seen/seen_private.h"
#include "store/store_models.h"
#include "store/store_path.h"
#include "store/store_private.h"

enum { SCAN_CHUNK = 512 };

static err_t scan_items(struct store *s, uint64_t *n_items)
{
  AUTO(region_fini) struct region region = { 0 };
  struct item_change *changes;
  struct store_scan scan;
  uint64_t first;
  size_t n = 1;

  TRY(store_scan_begin(s, SCAN_CHUNK, &scan));
  for (*n_items = 0; n > 0; *n_items += n) {
    region_reset(&region);
    TRY(store_scan_next(&scan, &region, &first, &changes, &n));
  }
  return store_scan_end(&scan);
}

/* What is walked in one transaction. */
struct walk {
  struct store *store;
  struct seen_store *seen;
  uint64_t n, n_users;
};

static err_code_t walk_aside(void *context, MDB_txn *txn)
{
  struct walk *w = context;
  struct side *side = store_current(w->store);
  const struct aside aside = { .env = w->store->env, .table = side->tables.aside, .txn = txn };
  uint8_t row[ASIDE_KEY_MAX + 1] = { 0 };
  size_t n_row = 0;
  struct aside_state state;
  bool is_found = true;

  for (;;) {
    TRY(aside_next(&aside, span_of(row, n_row), row, &n_row, &state, &is_found));
    if (!is_found)
      return ERR_OK;
    w->n++;
    row[n_row++] = 0; /* the next row is not below this */
  }
}

/* Count a row of what users have seen, which comes after `last`. */
static err_t walk_seen_row(struct walk *w, MDB_txn *txn, MDB_val *last, MDB_val *key, struct span value)
{
  struct seen_chunk chunk;

  if (!seen_chunk_decode(value, &chunk) || (last->mv_size && mdb_cmp(txn, w->seen->logs, last, key) >= 0))
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: a row of what users have seen: " ENV_REMEDY, w->seen->env->path);
  w->n += chunk.n;
  w->n_users += !last->mv_size || !span_equal(seen_key_user(env_span(*last)), seen_key_user(env_span(*key)));
  *last = *key;
  return ERR_OK;
}

static err_code_t walk_seen(void *context, MDB_txn *txn)
{
  struct walk *w = context;
  struct seen_store *s = w->seen;
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key, value, last = { 0 };
  int rc;

  TRY(env_verify(s->env, mdb_cursor_open(txn, s->logs, &cursor), "read what users have seen"));
  while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == MDB_SUCCESS)
    TRY(walk_seen_row(w, txn, &last, &key, env_span(value)));
  if (rc != MDB_NOTFOUND)
    return env_verify(s->env, rc, "read what users have seen");
  if (w->n != s->counts.n_items || w->n_users != s->counts.n_users)
    FAIL(ERR_STORE_CORRUPT,
         "store %s is damaged: %" PRIu64 " users have seen %" PRIu64 " items, but it counted %" PRIu64 " and %" PRIu64
         ": " ENV_REMEDY,
         s->env->path, w->n_users, w->n, s->counts.n_users, s->counts.n_items);
  return ERR_OK;
}

/* Read the records of the control topic: each has a seal. */
static err_t read_models(struct store *s)
{
  AUTO(region_fini) struct region region = { 0 };
  struct store_model_record *records;
  struct store_position position;
  bool has_position;
  size_t n;

  return store_models_get(s, &region, &records, &n, &has_position, &position);
}

static err_code_t check_meta(void *context, MDB_txn *txn)
{
  const struct walk *w = context;

  return w->store ? meta_check(w->store->env, txn, w->store->meta_table) : meta_check(w->seen->env, txn, w->seen->meta);
}

static err_t verify_items(const char *path, struct store_contents *out)
{
  AUTO(store_close) struct store *s = NULL;

  TRY(store_open_to_read(path, &s));
  struct walk walk = { .store = s };
  TRY(store_read(s, check_meta, &walk));
  TRY(scan_items(s, &out->n_items));
  TRY(store_read(s, walk_aside, &walk));
  out->n_aside = walk.n;
  TRY(read_models(s));
  store_positions(s, &out->n_partitions);
  return ERR_OK;
}

static err_t verify_seen(const char *path, struct store_contents *out)
{
  AUTO(seen_store_close) struct seen_store *s = NULL;

  TRY(seen_store_open_to_read(path, &s));
  struct walk walk = { .seen = s };
  TRY(env_read(s->env, check_meta, &walk));
  TRY(env_read(s->env, walk_seen, &walk));
  out->n_seen_items = walk.n;
  return ERR_OK;
}

err_t store_backup_verify(const char *path, struct store_contents *out)
{
  char seen[PATH_MAX];

  *out = (struct store_contents){ 0 };
  TRY(store_path_verify_store(path));
  TRY(verify_items(path, out));
  TRY(model_files_verify(path, &out->n_model_files));
  TRY(store_path_join(path, STORE_PATH_SEEN, seen));
  TRY(store_path_find_store(seen, &out->has_seen));
  return out->has_seen ? verify_seen(seen, out) : ERR_OK;
}
