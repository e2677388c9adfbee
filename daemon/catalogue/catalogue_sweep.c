/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting items that have been expired for long, from the store and from memory alike, in small batches.
 *
 * An item may have been renewed by a record that is not read yet. So an item is deleted only if, after it expired, the
 * brokers have said where each partition ends, and all up to there was applied: then every renewal that came in time
 * has been. Records may go on coming meanwhile. What the consumer knows of the ends does not suffice. It may be old,
 * because a fetch failed, the process was frozen or the machine was suspended.
 */
#include "daemon/catalogue/catalogue_state.h"

#include "base/clock.h"

/* Items of a batch, the time between two looks when there are fewer, and how long to wait for a broker. */
enum { SWEEP_ITEMS = 1000, SWEEP_EVERY_S = 1, ASK_AGAIN_S = 10, ASK_TIMEOUT_MS = 1000, LOOK_AGAIN_MS = 100 };

static int64_t after_ms(const struct catalogue *c)
{
  return (int64_t)c->with.config->catalogue.delete_expired_after_s * 1000;
}

/* Ask the brokers where the partitions end. Returns false without an answer. */
static bool ask_for_ends(struct catalogue *c)
{
  struct topic_positions *t = &c->topic.positions;
  int64_t first, now_ms = clock_unix_ms();

  for (size_t p = 0; p < t->n; p++) {
    if (!t->items[p].is_foreign &&
        topic_reader_bounds(c->topic.reader, (int32_t)p, ASK_TIMEOUT_MS, &first, &t->items[p].asked_end) != ERR_OK)
      return false;
  }
  c->sweep.asked_unix_ms = now_ms;
  return t->n > 0;
}

/* Was each partition asked for? One may have been added since, or all may be those of another topic. */
static bool has_asked_for_all(const struct catalogue *c)
{
  const struct topic_positions *t = &c->topic.positions;

  for (size_t p = 0; p < t->n; p++) {
    if (!t->items[p].is_foreign && t->items[p].asked_end == INT64_MAX)
      return false;
  }
  return true;
}

/* Have all records been applied that the brokers had when they were asked? Others may have come since. */
static bool has_reached_ends(const struct catalogue *c)
{
  const struct topic_positions *t = &c->topic.positions;

  for (size_t p = 0; p < t->n; p++) {
    if (!t->items[p].is_foreign && t->items[p].position.at.next < t->items[p].asked_end)
      return false;
  }
  return t->n > 0;
}

static bool is_within(int64_t unix_ms, int64_t from_ms, int64_t to_ms)
{
  return unix_ms >= from_ms && unix_ms <= to_ms;
}

/* Were all records applied that there were at some time after the items to delete expired? The wall clock is compared,
 * because it does not stand still while the machine sleeps. A time in the future is from before the clock was set. */
static bool has_read_renewals(struct catalogue *c)
{
  int64_t now_ms = clock_unix_ms(), from_ms = now_ms - after_ms(c);

  if (is_within(c->sweep.read_all_unix_ms, from_ms, now_ms))
    return true;
  bool has_asked = is_within(c->sweep.asked_unix_ms, from_ms, now_ms) && has_asked_for_all(c);
  if (!has_asked && !ask_for_ends(c)) {
    c->sweep.due_ns = clock_now_ns() + ASK_AGAIN_S * CLOCK_NS_PER_S;
    return false;
  }
  if (!has_reached_ends(c)) {
    c->sweep.due_ns = clock_now_ns() + LOOK_AGAIN_MS * CLOCK_NS_PER_MS;
    return false;
  }
  c->sweep.read_all_unix_ms = c->sweep.asked_unix_ms;
  c->sweep.asked_unix_ms = 0;
  return true;
}

/* Are all applied records below the stored positions? While a dead letter is open, its position is held back. */
static bool has_stored_all(const struct catalogue *c)
{
  return !c->ahead.is_waiting && c->letters.n == 0 && !topic_positions_any_changed(&c->topic.positions);
}

static err_t sweep_keys(struct catalogue *c, const struct span *keys, size_t n)
{
  struct store_effects effects;
  struct item_change *changes;

  TRY(region_array(&c->scratch, n, sizeof *changes, &changes));
  for (size_t i = 0; i < n; i++)
    changes[i] = (struct item_change){ .key = keys[i], .is_delete = true, .is_sweep = true };
  err_code_t err = store_apply(c->with.store, changes, n, NULL, 0, &effects);
  if (err == ERR_STORE_FULL) /* a delete writes too: try again when there is room */
    return ERR_OK;
  TRY(err);
  TRY(engine_apply(c->with.engine, effects.changes, effects.n_changes, NULL, 0));
  counters_add(&c->with.counters->swept, effects.n_changes);
  return ERR_OK;
}

err_t catalogue_sweep(struct catalogue *c)
{
  struct span *keys;
  size_t n;

  if (after_ms(c) == 0 || clock_now_ns() < c->sweep.due_ns || catalogue_phase(c) != CATALOGUE_LIVE ||
      !has_stored_all(c))
    return ERR_OK;
  region_reset(&c->scratch);
  TRY(engine_pass_time(c->with.engine));
  TRY(engine_list_expired(c->with.engine, after_ms(c), SWEEP_ITEMS, &c->scratch, &keys, &n));
  c->sweep.due_ns = n == SWEEP_ITEMS ? 0 : clock_now_ns() + SWEEP_EVERY_S * CLOCK_NS_PER_S;
  return n > 0 && has_read_renewals(c) ? sweep_keys(c, keys, n) : ERR_OK;
}
