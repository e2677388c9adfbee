/* Applying a batch: changes and positions in one transaction. */
#include "store/store_private.h"

#include "base/mem.h"

struct batch {
  struct store *store;
  const struct item_change *changes;
  size_t n;
  const struct store_position *positions;
  size_t n_positions;
  struct meta meta; /* as the transaction leaves it */
};

/* Whether the log is being read again: offsets compare within one partition of one generation only. */
static bool is_replayed(const struct item_change *change, const struct record_head *stored, uint64_t generation)
{
  return stored->generation == generation && stored->partition == change->partition && change->offset <= stored->offset;
}

/* Whether the parts from i on name the space. */
static bool names_space(const struct item_change *change, size_t i, struct span space)
{
  for (; i < change->n_parts; i++)
    if (span_equal(change->parts[i].space, space))
      return true;
  return false;
}

/* The item as the change leaves it: its parts, and those of the stored item that it does not name. Where a change
 * names a space twice, the later part is the one. Bytes stay where they are. */
static err_t merge(const struct item_change *stored, const struct item_change *change, struct region *region,
                   struct item_change *out)
{
  struct part *parts;
  size_t n = 0;

  TRY(region_array(region, stored->n_parts + change->n_parts, sizeof *parts, &parts));
  for (size_t i = 0; i < stored->n_parts; i++)
    if (!names_space(change, 0, stored->parts[i].space))
      parts[n++] = stored->parts[i];
  for (size_t i = 0; i < change->n_parts; i++)
    if (!names_space(change, i + 1, change->parts[i].space))
      parts[n++] = change->parts[i];
  *out = *change;
  out->parts = parts;
  out->n_parts = n;
  return ERR_OK;
}

static err_t put_item(struct slots *slots, uint64_t generation, struct item_change *change,
                      const struct slots_item *stored)
{
  struct item_change before = { 0 };
  struct item_change after;
  struct span record;

  if (stored && stored->head.generation < generation)
    change->is_whole = true;
  if (stored && !change->is_whole)
    TRY(record_decode(stored->record, slots->scratch, &before));
  TRY(merge(&before, change, slots->scratch, &after));
  TRY(record_encode(&after, generation, slots->scratch, &record));
  if (stored)
    return slots_overwrite(slots, stored->slot, record);
  return slots_append(slots, change->key, record);
}

static err_t apply_change(struct slots *slots, uint64_t generation, struct item_change *change, enum store_effect *kind)
{
  struct slots_item stored;
  bool is_found;

  TRY(slots_find(slots, change->key, &is_found, &stored));
  *kind = (is_found ? is_replayed(change, &stored.head, generation) : change->is_delete) ? STORE_SKIPPED : STORE_APPLIED;
  if (*kind == STORE_SKIPPED)
    return ERR_OK;
  if (change->is_delete)
    return slots_del(slots, stored.slot, change->key);
  return put_item(slots, generation, change, is_found ? &stored : NULL);
}

static err_t put_positions(const struct batch *b, MDB_txn *txn)
{
  struct store *s = b->store;

  for (size_t i = 0; i < b->n_positions; i++)
    TRY(positions_put(s->env, txn, s->tables.positions, positions_find(&s->draft, b->positions[i].partition)));
  return ERR_OK;
}

static err_code_t apply_batch(void *context, MDB_txn *txn)
{
  struct batch *b = context;
  struct store *s = b->store;
  struct slots slots = store_slots(s, txn);

  s->effects.n_changes = 0;
  for (size_t i = 0; i < b->n; i++) {
    struct item_change change = b->changes[i];
    region_reset(&s->scratch);
    TRY(apply_change(&slots, s->meta.generation, &change, &s->effects.kinds[i]));
    if (s->effects.kinds[i] == STORE_APPLIED)
      s->effects.changes[s->effects.n_changes++] = change;
  }
  TRY(put_positions(b, txn));
  b->meta = s->meta;
  b->meta.n_items = slots.n;
  return meta_put(s->env, txn, s->tables.meta, &s->meta, &b->meta);
}

static void swap_positions(struct positions *a, struct positions *b)
{
  struct positions c = *a;

  *a = *b;
  *b = c;
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
  };

  TRY(mem_grow(n, sizeof *s->effects.kinds, &s->effects.kinds_capacity, &s->effects.kinds));
  TRY(mem_grow(n, sizeof *s->effects.changes, &s->effects.changes_capacity, &s->effects.changes));
  TRY(positions_copy(&s->positions, &s->draft));
  for (size_t i = 0; i < n_positions; i++)
    TRY(positions_advance(&s->draft, &positions[i]));
  TRY(store_write(s, apply_batch, &batch, &batch.meta));
  swap_positions(&s->positions, &s->draft);
  if (effects)
    *effects = (struct store_effects){ s->effects.kinds, s->effects.changes, s->effects.n_changes, 0 };
  return ERR_OK;
}
