/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a store: create or load its tables, and check that they agree. */
#include "store/store_private.h"

#include "base/clock.h"
#include "base/mem.h"

/* Verify that `items` and `keys` have a row for each item. store_scan_end() verifies that the slots are dense. */
static err_t verify_counts(struct store *s, MDB_txn *txn, size_t side)
{
  uint64_t n_items = s->meta.sides[side].n_items;
  uint64_t n_rows;
  uint64_t n_keys;

  TRY(tables_count(s->env, txn, s->sides[side].tables.items, &n_rows));
  TRY(tables_count(s->env, txn, s->sides[side].tables.keys, &n_keys));
  if (n_rows != n_items || n_keys != n_items)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: it should have %llu items and has %llu, with %llu keys: " ENV_REMEDY,
         s->env->path, (unsigned long long)n_items, (unsigned long long)n_rows, (unsigned long long)n_keys);
  return ERR_OK;
}

static err_t load_side(struct store *s, MDB_txn *txn, size_t side)
{
  TRY(verify_counts(s, txn, side));
  return store_load_side(s, txn, side);
}

static err_t load(struct store *s, MDB_txn *txn)
{
  uint64_t n_aside;

  TRY(store_open_sides(s, txn));
  TRY(meta_get(s->env, txn, s->meta_table, &s->meta));
  TRY(load_side(s, txn, s->meta.live));
  if (s->meta.rebuilt != META_NO_SIDE)
    TRY(load_side(s, txn, s->meta.rebuilt));
  TRY(tables_count(s->env, txn, store_current(s)->tables.aside, &n_aside));
  atomic_store_explicit(&s->stats.n_aside, n_aside, memory_order_relaxed);
  return ERR_OK;
}

static err_code_t create(void *context, MDB_txn *txn)
{
  struct store *s = context;
  struct meta meta = { .rebuilt = META_NO_SIDE, .log_number = 1 };

  meta.sides[meta.live].log_number = meta.log_number;
  TRY(tables_create_meta(s->env, txn, &s->meta_table));
  for (size_t i = 0; i < TABLES_SIDES; i++)
    TRY(tables_open_side(s->env, txn, i, true, &s->sides[i].tables));
  TRY(meta_put_schema(s->env, txn, s->meta_table, "schema", META_SCHEMA));
  return meta_put(s->env, txn, s->meta_table, &meta);
}

struct look {
  struct store *store;
  bool is_new;
};

static err_code_t look(void *context, MDB_txn *txn)
{
  struct look *l = context;
  struct store *s = l->store;

  TRY(tables_open_meta(s->env, txn, &s->meta_table, &l->is_new));
  if (l->is_new)
    return ERR_OK;
  TRY(meta_verify_schema(s->env, txn, s->meta_table, "schema", META_SCHEMA));
  return load(s, txn);
}

static err_t open_tables(struct store *s)
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

static err_t make_store(struct store **out)
{
  struct store *s;

  TRY(mem_array(1, sizeof *s, &s));
  s->clock_unix_ms = clock_unix_ms;
  s->max_items = UINT64_MAX;
  s->has_leftovers = true;
  *out = s;
  return ERR_OK;
}

static err_t load_all(struct store *s, bool reads_values)
{
  TRY(env_check_pages(s->env, reads_values));
  TRY(open_tables(s));
  store_begin_log(s);
  store_publish_stats(s);
  return ERR_OK;
}

err_t store_open_sized(const char *path, size_t map_bytes, struct store **out)
{
  AUTO(store_close) struct store *s = NULL;

  TRY(make_store(&s));
  TRY(env_open(path, map_bytes, &s->env));
  TRY(load_all(s, false)); /* all items are read next, and their checksums verified */
  *out = s;
  s = NULL;
  return ERR_OK;
}

err_t store_open_to_read(const char *path, struct store **out)
{
  AUTO(store_close) struct store *s = NULL;

  TRY(make_store(&s));
  TRY(env_open_to_read(path, &s->env));
  TRY(load_all(s, true));
  *out = s;
  s = NULL;
  return ERR_OK;
}

err_t store_open(const char *path, struct store **out)
{
  return store_open_sized(path, STORE_MAP_BYTES, out);
}

void store_close(struct store **s)
{
  if (!*s)
    return;
  env_close(&(*s)->env);
  for (size_t i = 0; i < TABLES_SIDES; i++) {
    store_clear_side(&(*s)->sides[i]);
    positions_fini(&(*s)->sides[i].positions);
  }
  positions_fini(&(*s)->refused);
  refused_keys_fini(&(*s)->refused_keys);
  positions_fini(&(*s)->draft.positions);
  positions_fini(&(*s)->draft.refused);
  attribute_ids_fini(&(*s)->attribute_ids);
  region_fini(&(*s)->scratch);
  region_fini(&(*s)->bulk);
  region_fini(&(*s)->effects.region);
  mem_free(&(*s)->effects.kinds);
  mem_free(&(*s)->effects.changes);
  mem_free(s);
}

void store_stats(const struct store *s, struct store_stats *out)
{
  *out = (struct store_stats){
    .n_items = atomic_load_explicit(&s->stats.n_items, memory_order_relaxed),
    .n_rebuilt_items = atomic_load_explicit(&s->stats.n_rebuilt_items, memory_order_relaxed),
    .n_aside = atomic_load_explicit(&s->stats.n_aside, memory_order_relaxed),
    .map_bytes = atomic_load_explicit(&s->stats.map_bytes, memory_order_relaxed),
    .used_bytes = atomic_load_explicit(&s->stats.used_bytes, memory_order_relaxed),
  };
}
