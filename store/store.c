#include "store/store_private.h"

#include "base/mem.h"

static void publish_stats(struct store *s)
{
  atomic_store_explicit(&s->stats.n_items, s->meta.n_items, memory_order_relaxed);
  atomic_store_explicit(&s->stats.map_bytes, s->env->map_bytes, memory_order_relaxed);
  atomic_store_explicit(&s->stats.used_bytes, s->env->used_bytes, memory_order_relaxed);
}

struct slots store_slots(struct store *s, MDB_txn *txn)
{
  return (struct slots){
    .env = s->env,
    .tables = &s->tables,
    .txn = txn,
    .scratch = &s->scratch,
    .n = s->meta.n_items,
  };
}

err_t store_write(struct store *s, env_body body, void *context, const struct meta *meta)
{
  TRY(env_write(s->env, body, context));
  s->meta = *meta;
  publish_stats(s);
  return ERR_OK;
}

/* Slots are dense when there are as many rows as items and the last row is the last slot. */
static err_t verify_counts(struct store *s, MDB_txn *txn, uint64_t n_items)
{
  uint64_t n_rows;
  uint64_t n_keys;

  TRY(tables_count(s->env, txn, s->tables.items, &n_rows));
  TRY(tables_count(s->env, txn, s->tables.keys, &n_keys));
  if (n_rows != n_items || n_keys != n_items)
    FAIL(ERR_STORE_CORRUPT, "store %s is damaged: it should have %llu items and has %llu, with %llu keys: " ENV_REMEDY,
         s->env->path, (unsigned long long)n_items, (unsigned long long)n_rows, (unsigned long long)n_keys);
  return ERR_OK;
}

static err_t load_source(struct store *s, MDB_txn *txn)
{
  mem_free(&s->cluster_id);
  mem_free(&s->topic);
  TRY(meta_get_text(s->env, txn, s->tables.meta, "cluster_id", &s->cluster_id));
  return meta_get_text(s->env, txn, s->tables.meta, "topic", &s->topic);
}

static err_code_t load(void *context, MDB_txn *txn)
{
  struct store *s = context;
  bool is_new;

  TRY(tables_open_meta(s->env, txn, &s->tables, &is_new));
  if (is_new)
    TRY(meta_create(s->env, txn, s->tables.meta, &s->meta));
  else
    TRY(meta_get(s->env, txn, s->tables.meta, &s->meta));
  TRY(tables_open_rest(s->env, txn, is_new, &s->tables));
  TRY(verify_counts(s, txn, s->meta.n_items));
  TRY(positions_get(s->env, txn, s->tables.positions, &s->positions));
  return load_source(s, txn);
}

err_t store_open_sized(const char *path, size_t map_bytes, struct store **out)
{
  AUTO(store_close) struct store *s = NULL;

  TRY(mem_array(1, sizeof *s, &s));
  TRY(env_open(path, map_bytes, &s->env));
  TRY(store_write(s, load, s, &s->meta));
  s->sweep_slot = UINT64_MAX;
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
  positions_fini(&(*s)->positions);
  positions_fini(&(*s)->draft);
  region_fini(&(*s)->scratch);
  region_fini(&(*s)->batch);
  mem_free(&(*s)->effects.kinds);
  mem_free(&(*s)->effects.changes);
  mem_free(&(*s)->cluster_id);
  mem_free(&(*s)->topic);
  mem_free(s);
}

const struct store_position *store_positions(const struct store *s, size_t *n)
{
  *n = s->positions.n;
  return s->positions.rows;
}

bool store_source_get(const struct store *s, struct store_source *out)
{
  if (!s->cluster_id || !s->topic)
    return false;
  *out = (struct store_source){ .cluster_id = s->cluster_id, .topic = s->topic };
  return true;
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

  TRY(meta_put_text(s->env, txn, s->tables.meta, "cluster_id", put->cluster_id));
  return meta_put_text(s->env, txn, s->tables.meta, "topic", put->topic);
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

  TRY(mem_copy_str(source->cluster_id, &cluster_id));
  TRY(mem_copy_str(source->topic, &topic));
  struct source_put put = { s, cluster_id, topic };
  TRY(store_write(s, write_source, &put, &s->meta));
  replace_text(&s->cluster_id, &cluster_id);
  replace_text(&s->topic, &topic);
  return ERR_OK;
}

void store_stats(const struct store *s, struct store_stats *out)
{
  *out = (struct store_stats){
    .n_items = atomic_load_explicit(&s->stats.n_items, memory_order_relaxed),
    .map_bytes = atomic_load_explicit(&s->stats.map_bytes, memory_order_relaxed),
    .used_bytes = atomic_load_explicit(&s->stats.used_bytes, memory_order_relaxed),
  };
}
