/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_private.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void publish_stats(struct store *s)
{
  const struct meta *m = &s->meta;
  uint64_t n_rebuilt = m->rebuilt == META_NO_SIDE ? 0 : m->sides[m->rebuilt].n_items;

  atomic_store_explicit(&s->stats.n_items, m->sides[m->live].n_items, memory_order_relaxed);
  atomic_store_explicit(&s->stats.n_rebuilt_items, n_rebuilt, memory_order_relaxed);
  atomic_store_explicit(&s->stats.map_bytes, s->env->map_bytes, memory_order_relaxed);
  atomic_store_explicit(&s->stats.used_bytes, s->env->used_bytes, memory_order_relaxed);
}

struct slots store_slots(struct store *s, MDB_txn *txn, size_t side)
{
  return (struct slots){
    .env = s->env,
    .tables = &s->sides[side].tables,
    .txn = txn,
    .scratch = &s->scratch,
    .n = s->meta.sides[side].n_items,
  };
}

void store_text_name(const char *stem, size_t side, char out[STORE_TEXT_NAME_BYTES])
{
  snprintf(out, STORE_TEXT_NAME_BYTES, "%s.%zu", stem, side);
}

static err_code_t open_sides(void *context, MDB_txn *txn)
{
  struct store *s = context;
  bool is_new;

  TRY(tables_open_meta(s->env, txn, &s->meta_table, &is_new));
  for (size_t i = 0; i < TABLES_SIDES; i++)
    TRY(tables_open_side(s->env, txn, i, false, &s->sides[i].tables));
  return ERR_OK;
}

/* After a failure that LMDB does not survive, its environment is opened anew. What memory has of the store stays
 * true. */
static err_t ensure_open(struct store *s)
{
  if (!env_is_lost(s->env))
    return ERR_OK;
  TRY(env_reopen(s->env));
  err_code_t err = env_read(s->env, open_sides, s);
  if (err != ERR_OK)
    env_lose(s->env);
  return err;
}

err_t store_write(struct store *s, env_body body, void *context, const struct meta *meta)
{
  TRY(ensure_open(s));
  TRY(env_write(s->env, body, context));
  s->meta = *meta;
  publish_stats(s);
  return ERR_OK;
}

err_t store_read(struct store *s, env_body body, void *context)
{
  TRY(ensure_open(s));
  return env_read(s->env, body, context);
}

/* ---- Opening ---- */

/* Slots are dense when there are as many rows as items and the last row is the last slot. */
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

static err_t load_text(struct store *s, MDB_txn *txn, const char *stem, size_t side, char **out)
{
  char name[STORE_TEXT_NAME_BYTES];

  store_text_name(stem, side, name);
  mem_free(out);
  return meta_get_text(s->env, txn, s->meta_table, name, out);
}

static err_t load_side(struct store *s, MDB_txn *txn, size_t i)
{
  struct side *side = &s->sides[i];

  TRY(verify_counts(s, txn, i));
  TRY(positions_get(s->env, txn, side->tables.positions, &side->positions));
  TRY(load_text(s, txn, "cluster_id", i, &side->cluster_id));
  return load_text(s, txn, "topic", i, &side->topic);
}

static err_code_t load(void *context, MDB_txn *txn)
{
  struct store *s = context;
  uint64_t n_aside;

  TRY(open_sides(s, txn));
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
  struct meta meta = { .rebuilt = META_NO_SIDE, .generation = 1 };

  meta.sides[meta.live].generation = meta.generation;
  TRY(tables_create_meta(s->env, txn, &s->meta_table));
  for (size_t i = 0; i < TABLES_SIDES; i++)
    TRY(tables_open_side(s->env, txn, i, true, &s->sides[i].tables));
  TRY(meta_put_schema(s->env, txn, s->meta_table));
  return meta_put(s->env, txn, s->meta_table, &meta);
}

struct look {
  struct store *store;
  bool is_new;
  uint64_t schema;
};

static err_code_t look(void *context, MDB_txn *txn)
{
  struct look *l = context;
  struct store *s = l->store;

  TRY(tables_open_meta(s->env, txn, &s->meta_table, &l->is_new));
  return l->is_new ? ERR_OK : meta_get_schema(s->env, txn, s->meta_table, &l->schema);
}

static err_t open_tables(struct store *s)
{
  struct look l = { .store = s };

  TRY(env_read(s->env, look, &l));
  if (l.is_new)
    TRY(env_write(s->env, create, s));
  else if (l.schema < META_SCHEMA)
    TRY(env_write(s->env, store_convert_schema_1, s));
  return env_read(s->env, load, s);
}

err_t store_open_sized(const char *path, size_t map_bytes, struct store **out)
{
  AUTO(store_close) struct store *s = NULL;

  TRY(mem_array(1, sizeof *s, &s));
  s->clock_unix_ms = clock_unix_ms;
  s->max_items = UINT64_MAX;
  s->has_leftovers = true;
  TRY(env_open(path, map_bytes, &s->env));
  TRY(open_tables(s));
  store_forget_progress(s);
  publish_stats(s);
  *out = s;
  s = NULL;
  return ERR_OK;
}

err_t store_open(const char *path, struct store **out)
{
  return store_open_sized(path, STORE_MAP_BYTES, out);
}

void store_clear_side(struct side *side)
{
  positions_clear(&side->positions);
  mem_free(&side->cluster_id);
  mem_free(&side->topic);
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
  region_fini(&(*s)->scratch);
  region_fini(&(*s)->batch);
  region_fini(&(*s)->effects.region);
  mem_free(&(*s)->effects.kinds);
  mem_free(&(*s)->effects.changes);
  mem_free(s);
}

/* ---- What is known of the log ---- */

void store_forget_progress(struct store *s)
{
  store_retry_refused(s);
  s->walk = (struct tombstone_walk){ .is_walking = true, .oldest_unix_ms = INT64_MAX };
}

err_t store_forget_side(struct store *s, MDB_txn *txn, size_t side)
{
  char name[STORE_TEXT_NAME_BYTES];

  TRY(env_verify(s->env, mdb_drop(txn, s->sides[side].tables.positions, 0), "forget the positions"));
  store_text_name("cluster_id", side, name);
  TRY(meta_put_text(s->env, txn, s->meta_table, name, NULL));
  store_text_name("topic", side, name);
  return meta_put_text(s->env, txn, s->meta_table, name, NULL);
}

static bool get_source(const struct store *s, size_t side, struct store_source *out)
{
  const char *cluster_id = s->sides[side].cluster_id;
  const char *topic = s->sides[side].topic;

  if (!cluster_id || !topic)
    return false;
  *out = (struct store_source){ .cluster_id = cluster_id, .topic = topic };
  return true;
}

const struct store_position *store_positions(const struct store *s, size_t *n)
{
  const struct positions *positions = &s->sides[meta_current(&s->meta)].positions;

  *n = positions->n;
  return positions->rows;
}

bool store_source_get(const struct store *s, struct store_source *out)
{
  return get_source(s, meta_current(&s->meta), out);
}

bool store_live_source_get(const struct store *s, struct store_source *out)
{
  return get_source(s, s->meta.live, out);
}

struct source_put {
  struct store *store;
  const char *cluster_id;
  const char *topic;
};

static err_code_t write_source(void *context, MDB_txn *txn)
{
  const struct source_put *put = context;
  struct store *s = put->store;
  size_t side = meta_current(&s->meta);
  char name[STORE_TEXT_NAME_BYTES];

  store_text_name("cluster_id", side, name);
  TRY(meta_put_text(s->env, txn, s->meta_table, name, put->cluster_id));
  store_text_name("topic", side, name);
  return meta_put_text(s->env, txn, s->meta_table, name, put->topic);
}

static void replace_text(char **text, char **by)
{
  mem_free(text);
  *text = *by;
  *by = NULL;
}

err_t store_source_put(struct store *s, const struct store_source *source)
{
  AUTO(mem_free) char *cluster_id = NULL;
  AUTO(mem_free) char *topic = NULL;
  struct store_source was;

  if (store_source_get(s, &was) && strcmp(was.cluster_id, source->cluster_id) == 0 &&
      strcmp(was.topic, source->topic) == 0)
    return ERR_OK;
  TRY(mem_copy_str(source->cluster_id, &cluster_id));
  TRY(mem_copy_str(source->topic, &topic));
  struct source_put put = { s, cluster_id, topic };
  TRY(store_write(s, write_source, &put, &s->meta));
  replace_text(&store_current(s)->cluster_id, &cluster_id);
  replace_text(&store_current(s)->topic, &topic);
  return ERR_OK;
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
