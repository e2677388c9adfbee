/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the seen store, and its transactions. */
#include "store/seen/seen_store.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/progress.h"
#include "store/lmdb/meta.h"
#include "store/seen/seen_private.h"

/* Size of a new map: address space and a sparse file, not memory or disk. */
enum { MAP_BYTES = 1 << 30 };

/* Version of the stored format. */
enum { SCHEMA = 1 };

/* ---- Opening ---- */

static err_t open_table(struct seen_store *s, MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *out)
{
  int rc = mdb_dbi_open(txn, name, flags, out);

  if (rc == MDB_NOTFOUND)
    FAIL(ERR_STORE_CORRUPT, "store %s is not a whole store: its LMDB environment has no table `%s`: " ENV_REMEDY,
         s->env->path, name);
  return env_verify(s->env, rc, "open a table");
}

static err_t open_logs(struct seen_store *s, MDB_txn *txn, unsigned flags)
{
  TRY(open_table(s, txn, "seen", flags, &s->logs));
  return open_table(s, txn, "seen_positions", flags, &s->positions_table);
}

static err_code_t create(void *context, MDB_txn *txn)
{
  struct seen_store *s = context;

  TRY(tables_create_meta(s->env, txn, &s->meta));
  TRY(open_logs(s, txn, MDB_CREATE));
  TRY(meta_put_schema(s->env, txn, s->meta, "seen_schema", SCHEMA));
  return meta_put_bytes(s->env, txn, s->meta, "seen_counts", span_of(&s->counts, sizeof s->counts));
}

static err_t load_counts(struct seen_store *s, MDB_txn *txn)
{
  struct span value;
  bool is_found;

  TRY(meta_get_bytes(s->env, txn, s->meta, "seen_counts", &is_found, &value));
  if (!is_found || value.n != sizeof s->counts)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: no `seen_counts` in table `meta`: " ENV_REMEDY, s->env->path);
  memcpy(&s->counts, value.p, sizeof s->counts);
  return ERR_OK;
}

struct look {
  struct seen_store *store;
  bool is_new;
};

static err_code_t look(void *context, MDB_txn *txn)
{
  struct look *l = context;
  struct seen_store *s = l->store;

  TRY(tables_open_meta(s->env, txn, &s->meta, &l->is_new));
  if (l->is_new)
    return ERR_OK;
  TRY(meta_verify_schema(s->env, txn, s->meta, "seen_schema", SCHEMA));
  TRY(open_logs(s, txn, 0));
  TRY(load_counts(s, txn));
  return positions_get(s->env, txn, s->positions_table, &s->positions);
}

static err_t open_tables(struct seen_store *s)
{
  struct look l = { .store = s };

  TRY(env_read(s->env, look, &l));
  if (!l.is_new)
    return ERR_OK;
  if (s->env->is_to_read)
    FAIL(ERR_STORE, "store %s has no tables yet: a daemon makes them when it starts", s->env->path);
  TRY(env_write(s->env, create, s));
  return env_read(s->env, look, &l);
}

static err_t make_store(const struct seen_store_limits *limits, struct seen_store **out)
{
  struct seen_store *s;

  TRY(mem_array(1, sizeof *s, &s));
  s->clock_unix_ms = clock_unix_ms;
  s->limits = *limits;
  *out = s;
  return ERR_OK;
}

static err_t load_all(struct seen_store *s, bool checks_pages)
{
  if (checks_pages)
    TRY(env_check_pages(s->env, true));
  TRY(open_tables(s));
  seen_store_publish(s, &(struct seen_counts){ s->counts.n_users, s->counts.n_items });
  return ERR_OK;
}

err_t seen_store_open_sized(const char *path, const struct seen_store_limits *limits, size_t map_bytes,
                            bool checks_pages, struct seen_store **out)
{
  AUTO(seen_store_close) struct seen_store *s = NULL;

  TRY(make_store(limits, &s));
  TRY(env_open(path, map_bytes, &s->env));
  TRY(load_all(s, checks_pages));
  *out = s;
  s = NULL;
  return ERR_OK;
}

err_t seen_store_open_to_read(const char *path, struct seen_store **out)
{
  AUTO(seen_store_close) struct seen_store *s = NULL;
  static const struct seen_store_limits limits = { .max_per_user = UINT32_MAX };

  TRY(make_store(&limits, &s));
  TRY(env_open_to_read(path, &s->env));
  TRY(load_all(s, true));
  *out = s;
  s = NULL;
  return ERR_OK;
}

err_t seen_store_open(const char *path, const struct seen_store_limits *limits, struct seen_store **out)
{
  /* It may be large, and only the rows of some users are read. */
  return seen_store_open_sized(path, limits, MAP_BYTES, false, out);
}

void seen_store_close(struct seen_store **s)
{
  if (!*s)
    return;
  env_close(&(*s)->env);
  positions_fini(&(*s)->positions);
  positions_fini(&(*s)->draft);
  region_fini(&(*s)->scratch);
  mem_free(s);
}

/* ---- Transactions ---- */

/* Open the tables of an existing store. */
static err_code_t open_again(void *context, MDB_txn *txn)
{
  struct seen_store *s = context;
  bool is_new;

  TRY(tables_open_meta(s->env, txn, &s->meta, &is_new));
  return open_logs(s, txn, 0);
}

err_t seen_store_write(struct seen_store *s, env_body body, void *context)
{
  TRY(env_ensure_open(s->env, open_again, s));
  return env_write(s->env, body, context);
}

void seen_store_publish(struct seen_store *s, const struct seen_counts *counts)
{
  s->counts = *counts;
  atomic_store_explicit(&s->stats.n_users, counts->n_users, memory_order_relaxed);
  atomic_store_explicit(&s->stats.n_items, counts->n_items, memory_order_relaxed);
  atomic_store_explicit(&s->stats.used_bytes, s->env->used_bytes, memory_order_relaxed);
}

err_t seen_store_put_counts(struct seen_store *s, MDB_txn *txn, const struct seen_counts *counts)
{
  if (counts->n_users == s->counts.n_users && counts->n_items == s->counts.n_items)
    return ERR_OK;
  return meta_put_bytes(s->env, txn, s->meta, "seen_counts", span_of(counts, sizeof *counts));
}

int64_t seen_store_expired_before(const struct seen_store *s, int64_t now_unix_ms)
{
  return s->limits.ttl_ms ? now_unix_ms - s->limits.ttl_ms : INT64_MIN;
}

/* A batch of changes, and what the transaction makes of the counts. */
struct batch {
  struct seen_store *store;
  const struct seen_change *changes;
  size_t n;
  const struct store_position *positions;
  size_t n_positions;
  struct seen_counts counts;
};

static err_t apply_changes(struct batch *b, MDB_txn *txn)
{
  struct seen_store *s = b->store;
  int64_t now_unix_ms = s->clock_unix_ms();
  struct seen_log log = { s->env,
                          txn,
                          s->logs,
                          &s->scratch,
                          &b->counts,
                          now_unix_ms,
                          seen_store_expired_before(s, now_unix_ms),
                          s->limits.max_per_user };

  for (size_t i = 0; i < b->n; i++) {
    region_reset(&s->scratch);
    progress_note();
    TRY(b->changes[i].is_forgotten ? seen_log_delete(&log, b->changes[i].user) : seen_log_append(&log, &b->changes[i]));
  }
  return ERR_OK;
}

static err_t apply_positions(struct batch *b, MDB_txn *txn)
{
  struct seen_store *s = b->store;

  TRY(positions_copy(&s->positions, &s->draft));
  for (size_t i = 0; i < b->n_positions; i++) {
    TRY(positions_advance(&s->draft, &b->positions[i]));
    TRY(positions_put(s->env, txn, s->positions_table, positions_find(&s->draft, b->positions[i].at.partition)));
  }
  return ERR_OK;
}

static err_code_t apply(void *context, MDB_txn *txn)
{
  struct batch *b = context;

  b->counts = b->store->counts;
  TRY(apply_changes(b, txn));
  TRY(apply_positions(b, txn));
  return seen_store_put_counts(b->store, txn, &b->counts);
}

err_t seen_store_apply(struct seen_store *s, const struct seen_change *changes, size_t n,
                       const struct store_position *positions, size_t n_positions)
{
  struct batch b = { s, changes, n, positions, n_positions, { 0 } };

  TRY(seen_store_write(s, apply, &b));
  seen_store_publish(s, &b.counts);
  struct positions was = s->positions;
  s->positions = s->draft;
  s->draft = was;
  return ERR_OK;
}

const struct store_position *seen_store_positions(const struct seen_store *s, size_t *n)
{
  *n = s->positions.n;
  return s->positions.rows;
}

const struct store_position *seen_store_find_position(const struct seen_store *s, int32_t partition)
{
  return positions_find(&s->positions, partition);
}

static err_code_t forget_positions(void *context, MDB_txn *txn)
{
  struct seen_store *s = context;

  return env_verify(s->env, mdb_drop(txn, s->positions_table, 0), "forget the positions");
}

err_t seen_store_forget_positions(struct seen_store *s)
{
  TRY(seen_store_write(s, forget_positions, s));
  positions_clear(&s->positions);
  return ERR_OK;
}

/* ---- Reading ---- */

struct reading {
  const struct seen_store *store;
  struct seen_log log;
  struct span user;
  uint64_t first_chunk;
  struct seen_keys *out;
};

static err_code_t read_log(void *context, MDB_txn *txn)
{
  struct reading *r = context;

  r->log.txn = txn;
  r->log.table = r->store->logs; /* here, because a store that is reopened opens its tables again */
  return seen_log_read(&r->log, r->user, r->first_chunk, r->out);
}

err_t seen_store_read(struct seen_store *s, struct span user, uint64_t first_chunk, struct region *region,
                      struct seen_keys *out)
{
  struct reading r = {
    .store = s,
    .log = { .env = s->env,
             .scratch = region,
             .expired_before_unix_ms = seen_store_expired_before(s, s->clock_unix_ms()) },
    .user = user,
    .first_chunk = first_chunk,
    .out = out,
  };

  return env_read(s->env, read_log, &r);
}

bool seen_store_is_expired(const struct seen_store *s, int64_t time_unix_ms)
{
  return time_unix_ms < seen_store_expired_before(s, s->clock_unix_ms());
}

void seen_store_stats(const struct seen_store *s, struct seen_store_stats *out)
{
  *out = (struct seen_store_stats){
    .n_users = atomic_load_explicit(&s->stats.n_users, memory_order_relaxed),
    .n_items = atomic_load_explicit(&s->stats.n_items, memory_order_relaxed),
    .used_bytes = atomic_load_explicit(&s->stats.used_bytes, memory_order_relaxed),
  };
}
