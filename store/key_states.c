/* SPDX-License-Identifier: Apache-2.0 */
#include "store/key_states.h"

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

/* The record of a put on top of a record of the same partition, or of none (n = 0). */
static err_t encode_put(const struct key_context *k, const struct item_change *change, struct span stored,
                        struct span *out)
{
  struct region *region = k->slots->scratch;
  struct item_change before = { 0 };
  struct item_change after;

  if (stored.n && !change->is_whole)
    TRY(record_decode(stored, region, &before));
  TRY(merge(&before, change, region, &after));
  return record_encode(&after, k->generation, region, out);
}

static err_t encode_tombstone(const struct key_context *k, const struct item_change *change, struct span *out)
{
  return record_encode_tombstone(change, k->generation, k->now_unix_ms, k->slots->scratch, out);
}

static bool has_room(const struct key_context *k)
{
  return k->slots->n < k->max_items;
}

/* A put must not overtake one that was refused. A delete may: of what lies before it, nothing is left. */
static bool must_wait(const struct key_context *k, const struct item_change *change)
{
  return !change->is_delete && refused_keys_check(k->refused, change->key, change->partition);
}

static err_t refuse(struct key_context *k, const struct item_change *change, enum store_effect *kind)
{
  *kind = STORE_REFUSED;
  return refused_keys_add(k->refused, change->key, change->partition);
}

static err_t put_tombstone(struct key_context *k, const struct item_change *change, struct span tombstone)
{
  k->has_new_tombstone = true;
  return aside_put(k->aside, change->key, change->partition, tombstone);
}

/* ---- A key that one partition has: nearly every one ---- */

static err_t del_alone(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                       enum store_effect *kind)
{
  struct span tombstone;

  *kind = item ? STORE_APPLIED : STORE_SKIPPED;
  if (item)
    TRY(slots_del(k->slots, item->slot, change->key));
  if (!k->remembers_tombstones)
    return ERR_OK;
  TRY(encode_tombstone(k, change, &tombstone));
  return put_tombstone(k, change, tombstone);
}

static err_t put_alone(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                       enum store_effect *kind)
{
  struct span record;

  if (must_wait(k, change) || (!item && !has_room(k)))
    return refuse(k, change, kind);
  *kind = STORE_APPLIED;
  TRY(encode_put(k, change, item ? item->record : (struct span){ 0 }, &record));
  return item ? slots_overwrite(k->slots, item->slot, record) : slots_append(k->slots, change->key, record);
}

/* item  NULL: there is none. One of an older generation is what is left of a log that was forgotten: any record of the
 *       present one comes later */
static err_t apply_alone(struct key_context *k, const struct item_change *change, const struct slots_item *item,
                         enum store_effect *kind, struct item_change *effect)
{
  *effect = *change;
  if (item && item->head.generation == k->generation && change->offset <= item->head.offset) {
    *kind = STORE_SKIPPED;
    return ERR_OK;
  }
  return change->is_delete ? del_alone(k, change, item, kind) : put_alone(k, change, item, kind);
}

/* ---- A key that several partitions have, or had ---- */

/* The key's states before the change, and what the change makes of its own partition's. */
struct states {
  bool has_item;
  struct slots_item item;
  const struct aside_state *own; /* of the change's partition, NULL: none; it may be the item */
  bool is_own_item;
  const struct aside_state *other; /* the newest of the other partitions, NULL: none; it may be the item */
  bool is_other_item;
  struct aside_state next; /* the change's partition after it */
};

/* Later records win; of records of the same time, that of the higher partition. */
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

/* Records are copied: pages move when rows are written. */
static err_t load_states(struct key_context *k, const struct item_change *change, struct states *s)
{
  struct aside_state *aside;
  struct aside_state *item;
  size_t n;

  TRY(aside_get(k->aside, change->key, k->slots->scratch, &aside, &n));
  for (size_t i = 0; i < n; i++)
    sort_in(s, &aside[i], change->partition, false);
  if (!s->has_item)
    return ERR_OK;
  TRY(region_array(k->slots->scratch, 1, sizeof *item, &item));
  TRY(record_copy(s->item.record, false, k->slots->scratch, &item->record));
  TRY(record_read_head(item->record, &item->head));
  sort_in(s, item, change->partition, true);
  return ERR_OK;
}

static err_t make_next(const struct key_context *k, const struct item_change *change, struct states *s)
{
  struct span stored = { 0 };

  if (change->is_delete)
    TRY(encode_tombstone(k, change, &s->next.record));
  else {
    if (s->own && !s->own->head.is_tombstone)
      stored = s->own->record;
    TRY(encode_put(k, change, stored, &s->next.record));
  }
  return record_read_head(s->next.record, &s->next.head);
}

/* Make the winner the item, or, where it is a tombstone, delete the item. `has_others`: it is not the only state. */
static err_t settle_item(struct key_context *k, struct span key, const struct states *s,
                         const struct aside_state *winner, bool has_others)
{
  struct span record;

  if (winner->head.is_tombstone)
    return s->has_item ? slots_del(k->slots, s->item.slot, key) : ERR_OK;
  TRY(record_copy(winner->record, has_others, k->slots->scratch, &record));
  return s->has_item ? slots_overwrite(k->slots, s->item.slot, record) : slots_append(k->slots, key, record);
}

/* The change's own state is the newest: the former item goes aside. */
static err_t settle_next_wins(struct key_context *k, const struct item_change *change, const struct states *s)
{
  bool is_kept_aside = s->next.head.is_tombstone && (s->other || k->remembers_tombstones);

  TRY(settle_item(k, change->key, s, &s->next, s->other));
  if (s->is_other_item)
    TRY(aside_put(k->aside, change->key, s->other->head.partition, s->other->record));
  if (is_kept_aside)
    return put_tombstone(k, change, s->next.record);
  return s->own && !s->is_own_item ? aside_del(k->aside, change->key, change->partition) : ERR_OK;
}

/* Another partition's state is the newest, or becomes it, since this partition's time went back. */
static err_t settle_other_wins(struct key_context *k, const struct item_change *change, const struct states *s)
{
  bool takes_over = !s->is_other_item && !s->other->head.is_tombstone;

  if (!s->is_other_item || !s->item.head.has_aside)
    TRY(settle_item(k, change->key, s, s->other, true));
  if (takes_over)
    TRY(aside_del(k->aside, change->key, s->other->head.partition));
  if (change->is_delete)
    return put_tombstone(k, change, s->next.record);
  return aside_put(k->aside, change->key, change->partition, s->next.record);
}

/* What the engine must do, whose item is as s->item was. */
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
    if (!s->has_item)
      *kind = change->is_delete ? STORE_SKIPPED : STORE_ASIDE;
    return ERR_OK;
  }
  if (!is_next && s->is_other_item) {
    *kind = STORE_ASIDE;
    return ERR_OK;
  }
  if (is_next && has_all_parts && (s->is_own_item || !s->has_item))
    return ERR_OK;
  return record_decode(winner->record, k->effects, effect);
}

static err_t apply_among_states(struct key_context *k, const struct item_change *change, struct states *s,
                                enum store_effect *kind, struct item_change *effect)
{
  TRY(load_states(k, change, s));
  if (s->own && change->offset <= s->own->head.offset) {
    *kind = STORE_SKIPPED;
    return ERR_OK;
  }
  TRY(make_next(k, change, s));
  bool next_wins = !s->other || is_newer(&s->next.head, &s->other->head);
  const struct aside_state *winner = next_wins ? &s->next : s->other;
  bool makes_item = !s->has_item && !winner->head.is_tombstone;
  if (must_wait(k, change) || (makes_item && !has_room(k)))
    return refuse(k, change, kind);
  TRY(tell_effect(k, change, s, winner, kind, effect));
  return next_wins ? settle_next_wins(k, change, s) : settle_other_wins(k, change, s);
}

err_t key_apply(struct key_context *k, const struct item_change *change, enum store_effect *kind,
                struct item_change *effect)
{
  struct states s = { 0 };
  bool is_alone;

  if (change->key.n < 1 || change->key.n > ITEM_KEY_MAX)
    FAIL(ERR_ITEM, "a key has 1 to %d bytes, this one has %zu", ITEM_KEY_MAX, change->key.n);
  TRY(slots_find(k->slots, change->key, &s.has_item, &s.item));
  const struct record_head *head = &s.item.head;
  if (s.has_item)
    is_alone = head->generation != k->generation || (head->partition == change->partition && !head->has_aside);
  else
    TRY(aside_check_empty(k->aside, &is_alone));
  err_code_t err = is_alone ? apply_alone(k, change, s.has_item ? &s.item : NULL, kind, effect) :
                              apply_among_states(k, change, &s, kind, effect);
  if (err != ERR_ITEM)
    return err;
  *kind = STORE_UNFIT; /* found out before anything was written */
  return ERR_OK;
}
