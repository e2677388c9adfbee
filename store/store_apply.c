/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a batch: changes and positions in one transaction. Each batch also forgets some tombstones and frees some
 * rows of dropped catalogues. */
#include "store/keys/key_apply.h"
#include "store/store_private.h"

#include "base/mem.h"

/* Memory for the keys of a batch that is kept for the next one. */
enum { BULK_KEPT_BYTES = 1 << 20 };

/* Rows of side work for each batch: tombstones to look at, and rows to free. Both exceed the rows that a batch adds. */
enum { WALK_MIN = 8, WALK_PER_CHANGE = 2, FREE_MIN = 64, FREE_PER_CHANGE = 2 };

struct batch {
  struct store *store;
  const struct item_change *changes;
  size_t n;
  const struct store_position *positions;
  size_t n_positions;
  int64_t now_unix_ms;
  bool remembers_tombstones;
  bool must_remember; /* the batch must be applied again, this time remembering tombstones */

  /* State after the transaction. */
  struct meta meta;
  struct tombstone_walk walk;
  uint64_t n_aside;
  bool has_leftovers;
};

static bool is_held_back(const struct store *s, int32_t partition)
{
  return positions_find(&s->draft.refused, partition) != NULL;
}

static err_t note_refused(struct batch *b, const struct item_change *change)
{
  struct store *s = b->store;
  struct store_position first = { .at = { change->partition, change->offset } };

  s->effects.n_refused++;
  if (!is_held_back(s, change->partition))
    return positions_advance(&s->draft.refused, &first);
  return ERR_OK;
}

/* End this attempt: store_apply() begins another one. The error only aborts the transaction, so it has no message. */
static err_t redo(struct batch *b)
{
  b->must_remember = true;
  return ERR_STORE;
}

static err_t apply_changes(struct batch *b, struct key_context *k)
{
  struct store *s = b->store;

  for (size_t i = 0; i < b->n; i++) {
    enum store_effect *kind = &s->effects.kinds[i];
    if (k->slots->bulk)
      k->slots->bulk->change = i;
    region_reset(&s->scratch);
    TRY(key_apply(k, &b->changes[i], kind, &s->effects.changes[s->effects.n_changes]));
    s->effects.n_changes += *kind == STORE_APPLIED;
    s->effects.n_unfit += *kind == STORE_UNFIT;
    if (*kind == STORE_REFUSED)
      TRY(note_refused(b, &b->changes[i]));
  }
  TRY(slots_end_bulk(k->slots));
  /* A partition that is held back will be read again, so its tombstones must be remembered. */
  return s->effects.n_refused > 0 && !b->remembers_tombstones ? redo(b) : ERR_OK;
}

/* A partition that is held back stays where it was, but all is read that was not refused. */
static err_t put_positions(const struct batch *b, MDB_txn *txn)
{
  struct store *s = b->store;

  for (size_t i = 0; i < b->n_positions; i++) {
    struct store_position position = b->positions[i];
    const struct store_position *stored = positions_find(&s->draft.positions, position.at.partition);
    if (is_held_back(s, position.at.partition)) {
      if (!stored)
        continue;
      store_position_hold_back(&position, stored);
    }
    TRY(positions_advance(&s->draft.positions, &position));
    TRY(positions_put(s->env, txn, store_current(s)->tables.positions,
                      positions_find(&s->draft.positions, position.at.partition)));
  }
  return ERR_OK;
}

/* Start an attempt from the committed state. */
static err_t reset_attempt(struct batch *b)
{
  struct store *s = b->store;

  s->effects.n_changes = 0;
  s->effects.n_refused = 0;
  s->effects.n_unfit = 0;
  region_reset(&s->effects.region);
  region_trim(&s->bulk, BULK_KEPT_BYTES);
  b->meta = s->meta;
  b->walk = s->walk;
  b->has_leftovers = s->has_leftovers;
  if (!store_has_refused(s))
    refused_keys_clear(&s->refused_keys);
  TRY(positions_copy(&store_current(s)->positions, &s->draft.positions));
  return positions_copy(&s->refused, &s->draft.refused);
}

static err_t do_side_work(struct batch *b, const struct slots *slots, const struct aside *aside)
{
  struct store *s = b->store;
  bool is_done;

  TRY(store_walk_tombstones(slots, aside, &b->walk, b->now_unix_ms, WALK_MIN + WALK_PER_CHANGE * b->n));
  if (b->has_leftovers) {
    TRY(store_free_leftovers(s, slots->txn, FREE_MIN + FREE_PER_CHANGE * b->n, &is_done));
    b->has_leftovers = !is_done;
  }
  return tables_count(s->env, slots->txn, aside->table, &b->n_aside);
}

static err_code_t apply_batch(void *context, MDB_txn *txn)
{
  struct batch *b = context;
  struct store *s = b->store;
  size_t side = meta_current(&s->meta);
  struct slots slots = store_slots(s, txn, side);
  struct aside aside = { s->env, s->sides[side].tables.aside, txn, s->meta.sides[side].log_number };
  struct key_context k = {
    .slots = &slots,
    .aside = &aside,
    .ids = &s->attribute_ids,
    .effects = &s->effects.region,
    .log_number = aside.log_number,
    .max_items = s->max_items,
    .now_unix_ms = b->now_unix_ms,
    .remembers_tombstones = b->remembers_tombstones,
    .refused = &s->refused_keys,
  };

  AUTO(env_close_cursor) MDB_cursor *end = NULL;
  struct bulk_keys bulk;

  TRY(reset_attempt(b));
  if (b->n >= BULK_KEYS_FROM) {
    TRY(bulk_keys_read(s->env, txn, slots.tables->keys, b->changes, b->n, &s->bulk, &bulk));
    TRY(env_verify(s->env, mdb_cursor_open(txn, slots.tables->items, &end), "write items"));
    slots.bulk = &bulk;
    slots.end = end;
  }
  TRY(apply_changes(b, &k));
  TRY(put_positions(b, txn));
  if (k.has_new_tombstone)
    store_note_tombstone(&b->walk, b->now_unix_ms);
  TRY(do_side_work(b, &slots, &aside));
  b->meta.sides[side].n_items = slots.n;
  if (memcmp(&b->meta, &s->meta, sizeof b->meta) != 0)
    TRY(meta_put(s->env, txn, s->meta_table, &b->meta));
  return ERR_OK;
}

static void swap(struct positions *a, struct positions *b)
{
  struct positions c = *a;

  *a = *b;
  *b = c;
}

/* Make the draft the state in memory, after the commit. */
static void take_over(const struct batch *b)
{
  struct store *s = b->store;

  swap(&store_current(s)->positions, &s->draft.positions);
  swap(&s->refused, &s->draft.refused);
  s->walk = b->walk;
  s->has_leftovers = b->has_leftovers;
  atomic_store_explicit(&s->stats.n_aside, b->n_aside, memory_order_relaxed);
}

/* Return the offset from which the partition is read after a restart, once the batch is committed. */
static int64_t next_after(const struct batch *b, int32_t partition)
{
  const struct store_position *stored = positions_find(&store_current(b->store)->positions, partition);
  int64_t next = stored ? stored->at.next : 0;

  for (size_t i = 0; i < b->n_positions; i++)
    if (b->positions[i].at.partition == partition && b->positions[i].at.next > next)
      next = b->positions[i].at.next;
  return next;
}

/* Does the batch have a change at or above its partition's position? Then the caller holds the position back and will
 * read those records again. A put among them must then find the tombstone of a later delete. */
static bool is_ahead(const struct batch *b)
{
  int64_t next = 0;

  for (size_t i = 0; i < b->n; i++) {
    if (i == 0 || b->changes[i].partition != b->changes[i - 1].partition)
      next = next_after(b, b->changes[i].partition);
    if (b->changes[i].offset >= next)
      return true;
  }
  return false;
}

/* A log of one partition needs no tombstones if no record of it is read twice. */
static bool needs_tombstones(const struct batch *b)
{
  const struct store *s = b->store;
  bool has_one_partition = s->n_log_partitions == 1 && store_current(b->store)->positions.n <= 1;

  return !has_one_partition || store_has_refused(s) || is_ahead(b);
}

err_t store_apply(struct store *s, const struct item_change *changes, size_t n, const struct store_position *positions,
                  size_t n_positions, struct store_effects *effects)
{
  struct batch batch = {
    .store = s,
    .changes = changes,
    .n = n,
    .positions = positions,
    .n_positions = n_positions,
    .now_unix_ms = s->clock_unix_ms(),
  };

  batch.remembers_tombstones = needs_tombstones(&batch);

  TRY(mem_grow(n + 1, sizeof *s->effects.kinds, &s->effects.kinds_capacity, &s->effects.kinds));
  TRY(mem_grow(n + 1, sizeof *s->effects.changes, &s->effects.changes_capacity, &s->effects.changes));
  err_code_t err = store_write(s, apply_batch, &batch, &batch.meta);
  if (batch.must_remember) {
    batch.remembers_tombstones = true;
    err = store_write(s, apply_batch, &batch, &batch.meta);
  }
  if (err != ERR_OK)
    return err;
  take_over(&batch);
  if (effects)
    *effects = (struct store_effects){ s->effects.kinds, s->effects.changes, s->effects.n_changes, s->effects.n_refused,
                                       s->effects.n_unfit };
  return ERR_OK;
}
