/* SPDX-License-Identifier: Apache-2.0 */
/* A key that several partitions have, or had. Each partition has a state of the key, in table `aside` or as the item.
 * A change makes a new state of its own partition; then the newest state of all becomes the item. */
#include "store/keys/key_states.h"

/* The key's states before the change, and the state that the change makes. */
struct states {
  const struct slots_item *item; /* NULL: none */
  const struct aside_state *own; /* the state of the change's partition; NULL: none */
  bool is_own_item;
  const struct aside_state *other; /* the newest state of the other partitions; NULL: none */
  bool is_other_item;
  struct aside_state next; /* the state of the change's partition after the change */
};

/* Does state a win over state b? The later timestamp wins; on a tie, the higher partition. */
static bool is_newer(const struct record_head *a, const struct record_head *b)
{
  return a->timestamp_ms != b->timestamp_ms ? a->timestamp_ms > b->timestamp_ms : a->partition > b->partition;
}

static void sort_in(struct states *s, const struct aside_state *state, int32_t partition, bool is_item)
{
  if (state->head.partition == partition) {
    s->own = state;
    s->is_own_item = is_item;
  } else if (!s->other || is_newer(&state->head, &s->other->head)) {
    s->other = state;
    s->is_other_item = is_item;
  }
}

/* Load the key's states. Records are copied, because LMDB moves pages when rows are written. */
static err_t load_states(struct key_context *k, const struct item_change *change, struct states *s)
{
  struct aside_state *aside;
  struct aside_state *item;
  size_t n;

  TRY(aside_get(k->aside, change->key, k->slots->scratch, &aside, &n));
  for (size_t i = 0; i < n; i++)
    sort_in(s, &aside[i], change->partition, false);
  if (!s->item)
    return ERR_OK;
  TRY(region_array(k->slots->scratch, 1, sizeof *item, &item));
  TRY(record_copy(s->item->record, false, k->slots->scratch, &item->record));
  TRY(record_read_head(item->record, &item->head));
  sort_in(s, item, change->partition, true);
  return ERR_OK;
}

static err_t make_next(const struct key_context *k, const struct item_change *change, struct states *s)
{
  struct span stored = { 0 };

  if (change->is_delete)
    TRY(key_context_encode_tombstone(k, change, &s->next.record));
  else {
    if (s->own && !s->own->head.is_tombstone)
      stored = s->own->record;
    TRY(key_context_encode_put(k, change, stored, &s->next.record));
  }
  return record_read_head(s->next.record, &s->next.head);
}

/* Make the winner the item. If it is a tombstone, delete the item.
 *
 * has_others  the key has other states besides the winner
 */
static err_t settle_item(struct key_context *k, struct span key, const struct states *s,
                         const struct aside_state *winner, bool has_others)
{
  struct span record;

  if (winner->head.is_tombstone)
    return s->item ? slots_del(k->slots, s->item->slot, key) : ERR_OK;
  TRY(record_copy(winner->record, has_others, k->slots->scratch, &record));
  return s->item ? slots_overwrite(k->slots, s->item->slot, record) : slots_append(k->slots, key, record);
}

/* The change's new state is the newest of all. If another partition's state was the item, it goes aside. */
static err_t settle_next_wins(struct key_context *k, const struct item_change *change, const struct states *s)
{
  bool is_kept_aside = s->next.head.is_tombstone && (s->other || k->remembers_tombstones);

  TRY(settle_item(k, change->key, s, &s->next, s->other));
  if (s->is_other_item)
    TRY(aside_put(k->aside, change->key, s->other->head.partition, s->other->record));
  if (is_kept_aside)
    return key_context_put_tombstone(k, change, s->next.record);
  return s->own && !s->is_own_item ? aside_del(k->aside, change->key, change->partition) : ERR_OK;
}

/* Another partition's state is the newest. It may not have been before: the change's timestamp may be older than that
 * of its partition's former state. */
static err_t settle_other_wins(struct key_context *k, const struct item_change *change, const struct states *s)
{
  bool takes_over = !s->is_other_item && !s->other->head.is_tombstone;

  if (!s->is_other_item || !s->item->head.has_aside)
    TRY(settle_item(k, change->key, s, s->other, true));
  if (takes_over)
    TRY(aside_del(k->aside, change->key, s->other->head.partition));
  if (change->is_delete)
    return key_context_put_tombstone(k, change, s->next.record);
  return aside_put(k->aside, change->key, change->partition, s->next.record);
}

/* Tell what became of the change, and what the engine must apply. The engine still has the former item, s->item. */
static err_t tell_effect(struct key_context *k, const struct item_change *change, const struct states *s,
                         const struct aside_state *winner, enum store_effect *kind, struct item_change *effect)
{
  bool is_next = winner == &s->next;
  bool has_all_parts = s->is_own_item || !s->own || s->own->head.is_tombstone;

  *kind = STORE_APPLIED;
  *effect = *change;
  if (winner->head.is_tombstone) {
    effect->is_delete = true;
    effect->parts = NULL;
    effect->n_parts = 0;
    effect->attributes = NULL;
    effect->n_attributes = 0;
    if (!s->item)
      *kind = change->is_delete ? STORE_SKIPPED : STORE_ASIDE;
    return ERR_OK;
  }
  if (!is_next && s->is_other_item) {
    *kind = STORE_ASIDE;
    return ERR_OK;
  }
  if (is_next && has_all_parts && (s->is_own_item || !s->item))
    return ERR_OK;
  return record_decode(winner->record, k->ids, k->effects, effect);
}

err_t key_states_apply(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                       enum store_effect *kind, struct item_change *effect)
{
  struct states states = { .item = item };
  struct states *s = &states;

  TRY(load_states(k, change, s));
  if (s->own && change->offset <= s->own->head.offset && !change->is_sweep) {
    *kind = STORE_SKIPPED;
    return ERR_OK;
  }
  TRY(make_next(k, change, s));
  bool next_wins = !s->other || is_newer(&s->next.head, &s->other->head);
  const struct aside_state *winner = next_wins ? &s->next : s->other;
  bool makes_item = !s->item && !winner->head.is_tombstone;
  if (key_context_must_refuse(k, change, makes_item))
    return key_context_refuse(k, change, kind);
  TRY(tell_effect(k, change, s, winner, kind, effect));
  return next_wins ? settle_next_wins(k, change, s) : settle_other_wins(k, change, s);
}
