/* Rebuilding from the log: mark and sweep over generations.
 *
 * The sweep goes from the last slot down. What has been passed is of the present generation and stays so: applying a
 * batch writes that generation only, and the record that moves into a hole is the last one, passed already. So
 * one number says where to go on, batches may be applied between the steps, and after a crash the sweep
 * just begins at the end again.
 */
#include "store/store_private.h"

#include "base/mem.h"

#include <assert.h>

struct begin {
  struct store *store;
  struct meta meta;
};

static err_code_t begin_generation(void *context, MDB_txn *txn)
{
  struct begin *b = context;
  struct store *s = b->store;

  TRY(env_verify(s->env, mdb_drop(txn, s->tables.positions, 0), "forget the positions"));
  TRY(meta_put_text(s->env, txn, s->tables.meta, "cluster_id", NULL));
  TRY(meta_put_text(s->env, txn, s->tables.meta, "topic", NULL));
  b->meta = s->meta;
  b->meta.generation++;
  b->meta.is_rebuilding = true;
  return meta_put(s->env, txn, s->tables.meta, &s->meta, &b->meta);
}

err_t store_begin_rebuild(struct store *s)
{
  struct begin begin = { .store = s };

  TRY(store_write(s, begin_generation, &begin, &begin.meta));
  s->positions.n = 0;
  s->sweep_slot = UINT64_MAX;
  mem_free(&s->cluster_id);
  mem_free(&s->topic);
  return ERR_OK;
}

bool store_is_rebuilding(const struct store *s)
{
  return s->meta.is_rebuilding;
}

struct sweep {
  struct store *store;
  size_t max;
  struct item_change *deleted;
  size_t n_deleted;
  uint64_t slot; /* where the step ends */
  struct meta meta;
};

static err_t sweep_slot(struct sweep *w, struct slots *slots)
{
  struct slots_item item;
  struct span key;

  region_reset(slots->scratch);
  TRY(slots_get(slots, w->slot, &item));
  if (item.head.generation >= w->store->meta.generation)
    return ERR_OK;
  TRY(region_copy(&w->store->batch, item.head.key, &key));
  TRY(slots_del(slots, w->slot, key));
  w->deleted[w->n_deleted++] = (struct item_change){ .key = key, .is_delete = true, .partition = -1, .offset = -1 };
  return ERR_OK;
}

static err_code_t sweep_step(void *context, MDB_txn *txn)
{
  struct sweep *w = context;
  struct store *s = w->store;
  struct slots slots = store_slots(s, txn);

  w->n_deleted = 0;
  w->slot = s->sweep_slot < slots.n ? s->sweep_slot : slots.n;
  for (size_t i = 0; i < w->max && w->slot > 0; i++) {
    w->slot--;
    TRY(sweep_slot(w, &slots));
  }
  w->meta = s->meta;
  w->meta.n_items = slots.n;
  w->meta.is_rebuilding = w->slot > 0;
  return meta_put(s->env, txn, s->tables.meta, &s->meta, &w->meta);
}

err_t store_sweep(struct store *s, size_t max, store_visit visit, void *context, bool *is_done)
{
  struct sweep sweep = { .store = s, .max = max < s->meta.n_items ? max : s->meta.n_items };

  assert(max > 0);
  if (s->meta.is_rebuilding) {
    region_reset(&s->batch);
    TRY(region_array(&s->batch, sweep.max, sizeof *sweep.deleted, &sweep.deleted));
    TRY(store_write(s, sweep_step, &sweep, &sweep.meta));
    s->sweep_slot = sweep.slot;
    if (sweep.n_deleted > 0)
      TRY(visit(context, sweep.deleted, sweep.n_deleted));
  }
  *is_done = !s->meta.is_rebuilding;
  return ERR_OK;
}
