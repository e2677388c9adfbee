/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilding: a second catalogue is filled while the live one stays unchanged, and `meta` says which is which.
 * Beginning, finishing and abandoning a rebuild are one small transaction each, so a crash leaves the state before or
 * after it. */
#include "store/store_private.h"

#include <assert.h>

struct change_of_sides {
  struct store *store;
  struct meta meta;
  uint64_t n_aside; /* of the catalogue that is current then */
};

/* Store the change, and count what the statistics need of it. */
static err_t put_change(struct change_of_sides *c, MDB_txn *txn)
{
  struct store *s = c->store;

  TRY(meta_put(s->env, txn, s->meta_table, &c->meta));
  return tables_count(s->env, txn, s->sides[meta_current(&c->meta)].tables.aside, &c->n_aside);
}

/* Choose the side for a new rebuild: an empty one if there is one, else that of the unfinished rebuild, else a dropped
 * one. */
static err_t choose_side(struct store *s, MDB_txn *txn, size_t *out)
{
  size_t side = s->meta.rebuilt;
  uint64_t n_rows;

  for (size_t i = 0; i < TABLES_SIDES; i++) {
    if (!meta_is_dropped(&s->meta, i))
      continue;
    TRY(tables_count_side(s->env, txn, &s->sides[i].tables, &n_rows));
    if (n_rows == 0 || side == META_NO_SIDE)
      side = i;
    if (n_rows == 0)
      break;
  }
  *out = side;
  return ERR_OK;
}

static err_code_t begin_rebuild(void *context, MDB_txn *txn)
{
  struct change_of_sides *c = context;
  struct store *s = c->store;
  size_t side;

  TRY(choose_side(s, txn, &side));
  TRY(tables_clear_side(s->env, txn, &s->sides[side].tables)); /* nearly always empty */
  TRY(store_forget_side(s, txn, side));
  c->meta = s->meta;
  c->meta.rebuilt = side;
  c->meta.n_rebuilds++;
  c->meta.log_number++;
  c->meta.sides[side] = (struct meta_side){ .log_number = c->meta.log_number };
  return put_change(c, txn);
}

static err_t change_sides(struct store *s, env_body body)
{
  struct change_of_sides c = { .store = s };

  TRY(store_write(s, body, &c, &c.meta));
  atomic_store_explicit(&s->stats.n_aside, c.n_aside, memory_order_relaxed);
  s->has_leftovers = true;
  store_begin_log(s);
  return ERR_OK;
}

err_t store_begin_rebuild(struct store *s)
{
  TRY(change_sides(s, begin_rebuild));
  store_clear_side(store_current(s));
  return ERR_OK;
}

bool store_is_rebuilding(const struct store *s)
{
  return s->meta.rebuilt != META_NO_SIDE;
}

uint64_t store_rebuild_number(const struct store *s)
{
  return s->meta.n_rebuilds;
}

static err_code_t finish_rebuild(void *context, MDB_txn *txn)
{
  struct change_of_sides *c = context;
  struct store *s = c->store;

  c->meta = s->meta;
  c->meta.live = s->meta.rebuilt;
  c->meta.rebuilt = META_NO_SIDE;
  return put_change(c, txn);
}

err_t store_finish_rebuild(struct store *s)
{
  assert(store_is_rebuilding(s));
  return change_sides(s, finish_rebuild);
}

static err_code_t abandon_rebuild(void *context, MDB_txn *txn)
{
  struct change_of_sides *c = context;
  struct store *s = c->store;

  c->meta = s->meta;
  c->meta.rebuilt = META_NO_SIDE;
  return put_change(c, txn);
}

err_t store_abandon_rebuild(struct store *s)
{
  assert(store_is_rebuilding(s));
  return change_sides(s, abandon_rebuild);
}

/* The items stay. Their log's number is lower than that of the next log's records. */
static err_code_t forget_log(void *context, MDB_txn *txn)
{
  struct change_of_sides *c = context;
  struct store *s = c->store;
  size_t side = meta_current(&s->meta);

  TRY(store_forget_side(s, txn, side));
  c->meta = s->meta;
  c->meta.log_number++;
  c->meta.sides[side].log_number = c->meta.log_number;
  return put_change(c, txn);
}

err_t store_forget_log(struct store *s)
{
  TRY(change_sides(s, forget_log));
  store_clear_side(store_current(s));
  return ERR_OK;
}
