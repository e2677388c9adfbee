/* SPDX-License-Identifier: Apache-2.0 */
/* Write a batch to the store, then write the changes that the store made to the engine. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

enum { DISK_RETRY_MS = 1000, ROOM_WAIT_MS = 10000, FULL_LOG_EVERY_S = 60 };

/* The ages are those of the records that were read. What the store made of one may be an older record of another
 * partition. */
static void measure_ages(struct catalogue *c, const struct batch_write *write)
{
  age_watch_look(&c->ages);
  for (size_t i = 0; i < write->batch->n; i++) {
    int64_t age_ms = age_watch_age_ms(&c->ages, write->batch->changes[i].timestamp_ms);
    if (write->effects.kinds[i] == STORE_APPLIED && age_ms >= 0)
      hist_add(&c->with.counters->visible_us, (uint64_t)age_ms * 1000);
  }
}

static void count_batch(struct catalogue *c, const struct batch_write *write, bool is_visible)
{
  const struct store_effects *effects = &write->effects;
  uint64_t n_deleted = 0;

  if (is_visible)
    measure_ages(c, write);
  for (size_t i = 0; i < effects->n_changes; i++)
    n_deleted += effects->changes[i].is_delete;
  counters_add(&c->with.counters->deleted, n_deleted);
  counters_add(&c->with.counters->applied, effects->n_changes - n_deleted);
  counters_add(&c->with.counters->replayed,
               write->batch->n - effects->n_changes - effects->n_refused - effects->n_unfit);
  counters_add(&c->with.counters->batches, 1);
}

err_code_t catalogue_store_write(void *write)
{
  struct batch_write *w = write;

  return store_apply(w->store, w->batch->changes, w->batch->n, w->positions, w->n_positions, &w->effects);
}

/* While the disk is full, wait and retry. Queries are answered from the published epoch. */
static err_t wait_for_disk(struct catalogue *c, struct batch_write *write, err_code_t err)
{
  enum catalogue_phase before = catalogue_phase(c);
  char problem_before[REPORT_TEXT_BYTES];

  memcpy(problem_before, c->report.problem, sizeof problem_before); /* only this thread writes it */
  for (; err == ERR_STORE_FULL; err = catalogue_store_write(write)) {
    if (catalogue_phase(c) != CATALOGUE_DISK_FULL)
      log_error("store_disk_full", "reason=%s note=\"queries are answered; catalogue changes wait for room\"",
                log_failure());
    pulse_beat();
    char problem[REPORT_TEXT_BYTES];
    snprintf(problem, sizeof problem, "%s", err_message());
    TRY(catalogue_serve_stored(c));
    catalogue_set_phase(c, CATALOGUE_DISK_FULL, problem);
    TRY(catalogue_report_update(c));
    TRY(catalogue_wait(c, DISK_RETRY_MS));
    if (catalogue_is_stopping(c))
      return ERR_STOPPING;
  }
  if (err == ERR_OK && catalogue_phase(c) == CATALOGUE_DISK_FULL)
    catalogue_set_phase(c, before, problem_before);
  return err;
}

/* The store refused some new items because of catalogue.max_items. The positions of their partitions stay before them.
 * Later records are still applied, because a delete makes room. */
static void note_refused(struct catalogue *c, const struct batch_write *write)
{
  for (size_t i = 0; i < write->batch->n; i++) {
    if (write->effects.kinds[i] == STORE_REFUSED)
      c->topic.positions.items[write->batch->changes[i].partition].is_waiting_for_room = true;
  }
  counters_add(&c->with.counters->refused_full, write->effects.n_refused);
  c->room.has_refused = true;
}

err_t catalogue_enter_full(struct catalogue *c)
{
  char problem[REPORT_TEXT_BYTES];

  if (!c->room.has_refused)
    return ERR_OK;
  c->room.has_refused = false;
  snprintf(problem, sizeof problem,
           "the catalogue holds catalogue.max_items = %" PRIu64
           " items: new items wait in the topic; delete items, or raise the limit and restart",
           c->with.config->catalogue.max_items);
  if (clock_now_ns() >= c->room.log_due_ns) { /* not more often, if room comes and goes item by item */
    log_error("catalogue_full", "reason=%s", log_quote(span_of_str(problem)));
    c->room.log_due_ns = clock_now_ns() + FULL_LOG_EVERY_S * CLOCK_NS_PER_S;
  }
  if (!store_is_rebuilding(c->with.store))
    TRY(catalogue_serve(c));
  catalogue_set_phase(c, CATALOGUE_FULL, problem);
  c->room.retry_due_ns = clock_now_ns() + ROOM_WAIT_MS * CLOCK_NS_PER_MS;
  return ERR_OK;
}

/* Send dead letters for changes that would make a stored item too large. Each record fits, but the item keeps the parts
 * of all spaces that were ever named. The position has passed these records already: the letters hold nothing back. */
static void send_unfit(struct catalogue *c, const struct batch_write *write)
{
  struct dead_letter letter = {
    .topic = c->with.config->catalogue.dead_letter_topic,
    .has_key = true,
    .source_topic = c->with.config->catalogue.topic,
    .reason = "with the parts that are already stored, the item would exceed the maximum size",
    .kind = LETTER_TOO_LARGE,
  };

  for (size_t i = 0; i < write->batch->n; i++) {
    if (write->effects.kinds[i] != STORE_UNFIT)
      continue;
    letter.key = write->batch->changes[i].key;
    letter.partition = write->batch->changes[i].partition;
    letter.offset = write->batch->changes[i].offset;
    if (!delivery_send_dead_letter(c->with.delivery, &letter))
      counters_add(&c->with.counters->dead_letters_lost, 1);
  }
}

/* List the changed positions: for the watermark as they are; for the store, not beyond the partition's oldest dead
 * letter that is not delivered yet. */
static err_t list_positions(struct catalogue *c, struct batch_write *out)
{
  TRY(region_array(&c->scratch, c->topic.positions.n, sizeof *out->positions, &out->positions));
  TRY(region_array(&c->scratch, c->topic.positions.n, sizeof *out->watermark, &out->watermark));
  out->n_positions = topic_positions_list_changed(&c->topic.positions, out->positions);
  for (size_t i = 0; i < out->n_positions; i++) {
    struct store_position *position = &out->positions[i];
    const struct store_position *hold = letter_window_hold(&c->letters, position->at.partition);
    out->watermark[i] = position->at;
    if (hold)
      store_position_hold_back(position, hold);
  }
  return ERR_OK;
}

/* Remove partitions from the watermark that wait for room. */
static size_t drop_waiting(const struct catalogue *c, struct position *watermark, size_t n)
{
  size_t n_kept = 0;

  for (size_t i = 0; i < n; i++) {
    if (!c->topic.positions.items[watermark[i].partition].is_waiting_for_room)
      watermark[n_kept++] = watermark[i];
  }
  return n_kept;
}

/* A change in one partition can make another partition's version of the key the item. Its parts come from the store and
 * may be of a former model: drop those that no space can use. */
static void drop_unusable(struct catalogue *c, struct batch_write *write)
{
  size_t n = 0;

  for (size_t i = 0; i < write->batch->n; i++) {
    if (write->effects.kinds[i] != STORE_APPLIED)
      continue;
    struct item_change *effect = &write->effects.changes[n++];
    if (effect->parts != write->batch->changes[i].parts)
      catalogue_drop_unusable_parts(c, effect);
  }
}

/* Store the positions at the partitions' first records. A dead letter or an item that waits for room may hold the
 * position back at the very beginning. With its first record stored, a later start can still verify the topic. If the
 * disk is full, this is retried with the next batch. */
static err_t store_first(struct catalogue *c)
{
  struct store_position *positions;

  TRY(region_array(&c->scratch, c->topic.positions.n, sizeof *positions, &positions));
  size_t n = topic_positions_list_first(&c->topic.positions, positions);
  if (n == 0)
    return ERR_OK;
  err_code_t err = store_apply(c->with.store, NULL, 0, positions, n, NULL);
  if (err == ERR_STORE_FULL)
    return ERR_OK;
  TRY(err);
  topic_positions_mark_first_stored(&c->topic.positions);
  return ERR_OK;
}

err_t catalogue_begin_write(struct catalogue *c, const struct item_batch *batch, struct batch_write *out)
{
  *out = (struct batch_write){ .store = c->with.store, .batch = batch };
  region_reset(&c->scratch);
  TRY(store_first(c));
  return list_positions(c, out);
}

/* Write the changes that the store made to the engine. */
static err_t publish(struct catalogue *c, struct batch_write *write)
{
  drop_unusable(c, write);
  return engine_apply(c->with.engine, write->effects.changes, write->effects.n_changes, write->watermark,
                      drop_waiting(c, write->watermark, write->n_positions));
}

err_t catalogue_end_write(struct catalogue *c, struct batch_write *write, err_code_t stored)
{
  TRY(wait_for_disk(c, write, stored));
  if (write->effects.n_refused > 0)
    note_refused(c, write);
  if (write->effects.n_unfit > 0)
    send_unfit(c, write);
  if (store_is_rebuilding(c->with.store)) /* the items of a rebuild go only to the store, until it is complete */
    return ERR_OK;
  if (!c->first_fill.is_under_way)
    TRY(publish(c, write));
  count_batch(c, write, !c->first_fill.is_under_way);
  return ERR_OK;
}

/* While nobody searches the items that the batch goes to, it does not wait: and if the disk is full then, threads are
 * started to load the store. */
bool catalogue_can_wait(const struct catalogue *c, size_t first)
{
  bool is_searched = !c->first_fill.is_under_way && !store_is_rebuilding(c->with.store);
  size_t n = c->batch.n - first;

  return is_searched && c->models && n > 0 && models_can_wait(c->models, c->batch.changes + first, n);
}

static err_t apply(struct catalogue *c)
{
  struct batch_write write;

  TRY(catalogue_begin_write(c, &c->batch, &write));
  return catalogue_end_write(c, &write, catalogue_store_write(&write));
}

err_t catalogue_apply(struct catalogue *c)
{
  if (!catalogue_can_wait(c, 0))
    return apply(c);
  stand_back_enter(&c->stand_back);
  err_code_t err = apply(c);
  stand_back_leave(&c->stand_back);
  return err;
}
