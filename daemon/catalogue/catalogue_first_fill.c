/* SPDX-License-Identifier: Apache-2.0 */
/* The first fill: while much is to be read and nobody can search yet, records go to the store alone, in large batches.
 * When the topic has been read, the engine loads the store, which is several times faster than applying each record to
 * both arenas. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

/* Loading an item from the store takes about a quarter of the time that applying its record to the arenas takes. */
enum { LOADS_PER_APPLY = 4, SAY_EVERY_S = 10 };

static uint64_t count_records_to_read(const struct catalogue *c)
{
  uint64_t n = 0;

  for (size_t i = 0; i < c->topic.positions.n; i++) {
    const struct topic_position *p = &c->topic.positions.items[i];
    if (!p->is_paused && p->position.at.next < p->end_at_start)
      n += (uint64_t)(p->end_at_start - p->position.at.next);
  }
  return n;
}

void catalogue_begin_first_fill(struct catalogue *c)
{
  struct store_stats stats;
  uint64_t n = count_records_to_read(c);

  store_stats(c->with.store, &stats);
  if (catalogue_is_serving(c) || c->first_fill.is_under_way || n * LOADS_PER_APPLY <= stats.n_items)
    return;
  c->first_fill.is_under_way = true;
  c->first_fill.begin_ns = clock_now_ns();
  c->first_fill.say_due_ns = c->first_fill.begin_ns + SAY_EVERY_S * CLOCK_NS_PER_S;
  c->first_fill.n_records = n;
}

void catalogue_say_first_fill(struct catalogue *c)
{
  int64_t now = clock_now_ns();

  if (!c->first_fill.is_under_way || now < c->first_fill.say_due_ns)
    return;
  uint64_t left = count_records_to_read(c), read = c->first_fill.n_records > left ? c->first_fill.n_records - left : 0;
  double rate = (double)read / ((double)(now - c->first_fill.begin_ns) / (double)CLOCK_NS_PER_S);
  log_info("catalogue_filling", "records=%" PRIu64 " of=%" PRIu64 " records_per_s=%.0f remaining_s=%.0f", read,
           c->first_fill.n_records, rate, read > 0 ? (double)left / rate : 0.0);
  c->first_fill.say_due_ns = now + SAY_EVERY_S * CLOCK_NS_PER_S;
}

/* Load the live catalogue. During a rebuild the positions are those of the new log, which say nothing of it. */
static err_t load_at(struct catalogue *c, const struct position *positions, size_t n)
{
  return catalogue_load(c, positions, store_is_rebuilding(c->with.store) ? 0 : n);
}

err_t catalogue_serve(struct catalogue *c)
{
  struct position *positions;
  size_t n;

  if (c->first_fill.is_under_way) {
    TRY(catalogue_list_watermark(c, &positions, &n));
    TRY(load_at(c, positions, n));
  }
  atomic_store(&c->is_serving, true);
  return ERR_OK;
}

err_t catalogue_serve_stored(struct catalogue *c)
{
  const struct store_position *stored;
  struct position *positions;
  size_t n;

  if (c->first_fill.is_under_way) {
    stored = store_positions(c->with.store, &n);
    TRY(region_array(&c->scratch, n, sizeof *positions, &positions));
    for (size_t i = 0; i < n; i++)
      positions[i] = stored[i].at;
    TRY(load_at(c, positions, n));
  }
  atomic_store(&c->is_serving, true);
  return ERR_OK;
}
