/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead: in a first fill and in a rebuild, the next batch is read while the store writes the last one, in a
 * thread of its own. It is not read further ahead than that.
 *
 * A batch waits in c->batch until catalogue_take_batch() begins the next one. In between, the store has less than was
 * read. So a batch waits only if more is to be read: once the topic has been read to its end, the store has all of it.
 */
#include "daemon/catalogue/catalogue_state.h"

#include "base/errand.h"

static bool is_bulk(const struct catalogue *c)
{
  return c->first_fill.is_under_way || store_is_rebuilding(c->with.store);
}

/* Store the batch that waits, and gather the next one meanwhile. */
static err_t gather_beside_store(struct catalogue *c, struct damage_sighting *damage)
{
  size_t n_records = topic_reader_n_held(c->topic.reader);
  struct batch_write write;
  struct err_kept gathered;
  struct errand errand;

  c->ahead.is_waiting = false;
  item_batch_swap(&c->batch, &c->ahead.storing);
  TRY(catalogue_begin_write(c, &c->ahead.storing, &write));
  bool has_thread = errand_begin("store", catalogue_store_write, &write, &errand);
  if (!has_thread)
    err_keep(catalogue_store_write(&write), &errand.failure);
  err_keep(catalogue_gather(c, true, damage), &gathered);
  if (has_thread)
    errand_join(&errand);
  TRY(catalogue_end_write(c, &write, err_give_back(&errand.failure)));
  topic_reader_release(c->topic.reader, n_records);
  return err_give_back(&gathered);
}

err_t catalogue_take_batch(struct catalogue *c, struct damage_sighting *damage)
{
  return c->ahead.is_waiting ? gather_beside_store(c, damage) : catalogue_gather(c, is_bulk(c), damage);
}

/* May the batch wait until the next one is read? */
static bool may_wait(const struct catalogue *c, const struct damage_sighting *damage)
{
  const struct topic_positions *positions = &c->topic.positions;

  return is_bulk(c) && c->batch.n > 0 && !damage->is_there && !catalogue_is_stopping(c) &&
         !topic_positions_any_waits_for_room(positions) && !topic_positions_have_caught_up(positions);
}

static err_t apply_now(struct catalogue *c)
{
  c->ahead.is_waiting = false;
  if (c->batch.n > 0 || topic_positions_any_changed(&c->topic.positions))
    TRY(catalogue_apply(c));
  topic_reader_release_all(c->topic.reader);
  if (!is_bulk(c))
    item_batch_fini(&c->ahead.storing);
  return ERR_OK;
}

err_t catalogue_pass_batch_on(struct catalogue *c, const struct damage_sighting *damage)
{
  c->ahead.is_waiting = may_wait(c, damage);
  if (c->ahead.is_waiting)
    return ERR_OK;
  TRY(apply_now(c));
  return catalogue_enter_full(c);
}

err_t catalogue_apply_waiting(struct catalogue *c)
{
  return c->ahead.is_waiting ? apply_now(c) : ERR_OK;
}

void catalogue_forget_batch(struct catalogue *c)
{
  c->ahead.is_waiting = false;
  c->room.has_refused = false;
  topic_reader_release_all(c->topic.reader);
}
