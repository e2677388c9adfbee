/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions of the store. A committed write also updates `meta` and the statistics in memory. After a failure that
 * LMDB does not survive, the next transaction reopens the environment. */
#include "store/store_private.h"

void store_publish_stats(struct store *s)
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

err_code_t store_open_sides(void *context, MDB_txn *txn)
{
  struct store *s = context;
  bool is_new;

  TRY(tables_open_meta(s->env, txn, &s->meta_table, &is_new));
  for (size_t i = 0; i < TABLES_SIDES; i++)
    TRY(tables_open_side(s->env, txn, i, false, &s->sides[i].tables));
  return ERR_OK;
}

err_t store_ensure_open(struct store *s)
{
  return env_ensure_open(s->env, store_open_sides, s);
}

err_t store_write(struct store *s, env_body body, void *context, const struct meta *meta)
{
  TRY(store_ensure_open(s));
  TRY(env_write(s->env, body, context));
  s->meta = *meta;
  store_publish_stats(s);
  return ERR_OK;
}

err_t store_read(struct store *s, env_body body, void *context)
{
  TRY(store_ensure_open(s));
  return env_read(s->env, body, context);
}
