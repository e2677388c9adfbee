/* SPDX-License-Identifier: Apache-2.0 */
/* Forgetting old tombstones: a walk over the table `aside`, a few rows with each batch.
 *
 * A tombstone stays for STORE_TOMBSTONE_MS, and longer while its key has parts in any partition. Without it an older
 * state with parts would become the item. A round ends at the end of the table. The next round begins when the oldest
 * tombstone that this one has kept is old enough.
 */
#include "store/store_private.h"

static int64_t time_to_forget(int64_t applied_unix_ms)
{
  return applied_unix_ms > INT64_MAX - STORE_TOMBSTONE_MS ? INT64_MAX : applied_unix_ms + STORE_TOMBSTONE_MS;
}

void store_note_tombstone(struct tombstone_walk *walk, int64_t now_unix_ms)
{
  if (now_unix_ms < walk->oldest_unix_ms)
    walk->oldest_unix_ms = now_unix_ms;
  if (!walk->is_walking && time_to_forget(now_unix_ms) < walk->due_unix_ms)
    walk->due_unix_ms = time_to_forget(now_unix_ms);
}

/* Does the key have parts in any partition, as the item or aside? */
static err_t has_parts(const struct slots *slots, const struct aside *aside, struct span key, bool *out)
{
  struct slots_item item;
  struct aside_state *states;
  size_t n;

  TRY(slots_find(slots, key, out, &item));
  TRY(aside_get(aside, key, slots->scratch, &states, &n));
  for (size_t i = 0; i < n; i++)
    *out |= !states[i].head.is_tombstone;
  return ERR_OK;
}

/* Delete the row if it is no longer needed: an old tombstone, or a row of a forgotten log. */
static err_t look_at(const struct slots *slots, const struct aside *aside, struct tombstone_walk *walk,
                     int64_t now_unix_ms, const struct aside_state *state)
{
  const struct record_head *head = &state->head;
  bool is_needed = false;
  struct span key;

  region_reset(slots->scratch);
  TRY(region_copy(slots->scratch, head->key, &key));
  if (head->log_number == aside->log_number) {
    if (!head->is_tombstone)
      return ERR_OK;
    if (time_to_forget(head->applied_unix_ms) > now_unix_ms) {
      walk->oldest_unix_ms =
          head->applied_unix_ms < walk->oldest_unix_ms ? head->applied_unix_ms : walk->oldest_unix_ms;
      return ERR_OK;
    }
    TRY(has_parts(slots, aside, key, &is_needed));
  }
  return is_needed ? ERR_OK : aside_del(aside, key, head->partition);
}

static void begin_round(struct tombstone_walk *walk)
{
  walk->is_walking = true;
  walk->from_bytes = 0;
  walk->oldest_unix_ms = INT64_MAX;
}

static void end_round(struct tombstone_walk *walk)
{
  walk->is_walking = false;
  walk->due_unix_ms = time_to_forget(walk->oldest_unix_ms);
}

err_t store_walk_tombstones(const struct slots *slots, const struct aside *aside, struct tombstone_walk *walk,
                            int64_t now_unix_ms, size_t max)
{
  if (!walk->is_walking && now_unix_ms >= walk->due_unix_ms)
    begin_round(walk);
  for (size_t i = 0; walk->is_walking && i < max; i++) {
    struct aside_state state;
    bool is_found;
    TRY(aside_next(aside, span_of(walk->from, walk->from_bytes), walk->from, &walk->from_bytes, &state, &is_found));
    if (!is_found) {
      end_round(walk);
      return ERR_OK;
    }
    walk->from[walk->from_bytes++] = 0; /* the smallest key above this one */
    TRY(look_at(slots, aside, walk, now_unix_ms, &state));
  }
  return ERR_OK;
}
