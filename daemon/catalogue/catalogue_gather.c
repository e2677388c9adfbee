/* SPDX-License-Identifier: Apache-2.0 */
/* Read records of the topic into a batch. A record that cannot be used becomes a dead letter. */
#include "daemon/catalogue/catalogue_state.h"

#include "base/clock.h"
#include "base/log.h"

/* How long an idle thread waits for a record before it goes through its loop. */
enum { POLL_MS = 50 };

static void count_lost_letter(struct catalogue *c)
{
  if (!c->gather.has_logged_lost_letters)
    log_error("dead_letters_lost",
              "note=\"too many dead letters wait for delivery: further ones are counted and dropped\"");
  c->gather.has_logged_lost_letters = true;
  counters_add(&c->with.counters->dead_letters_lost, 1);
}

/* Send a dead letter for a record. If too many wait for delivery already, it is lost and counted. */
static void send_letter(struct catalogue *c, const struct topic_record *record, err_code_t err)
{
  if (!letter_window_send(&c->letters, c->with.delivery, c->with.config->catalogue.dead_letter_topic, record,
                          c->topic.name, err))
    count_lost_letter(c);
}

static err_t add_record(struct catalogue *c, const struct topic_record *record)
{
  bool may_take, is_new;

  TRY(catalogue_find_schema(c, record, &may_take));
  if (!may_take)
    return ERR_OK;
  TRY(followed_topic_take(&c->topic, record, &is_new));
  if (!is_new)
    return ERR_OK;
  err_code_t err = item_batch_add(&c->batch, &c->gather.format, &c->gather.rules, record);
  if (err_class(err) != ERR_CLASS_REJECT && err != ERR_REGISTRY) /* of a key that only this delete needs */
    return err;
  if (c->models && c->batch.refused_part.n > 0)
    models_note_refused(c->models, c->batch.refused_part, record->key);
  send_letter(c, record, err);
  return ERR_OK;
}

/* The broker says that an offset is out of range. If it is within the partition after all, that is damage, too. */
static err_t note_out_of_range(struct catalogue *c, const struct topic_events *events, struct damage_sighting *damage)
{
  if ((size_t)events->out_of_range_partition >= c->topic.positions.n)
    return ERR_OK;
  TRY(catalogue_topic_verify_position(c, events->out_of_range_partition));
  *damage = (struct damage_sighting){ true, events->out_of_range_partition,
                                      c->topic.positions.items[events->out_of_range_partition].position.at.next };
  return ERR_OK;
}

/* Poll once and add the records to the batch.
 *
 * room  how many records the batch can still take
 * n     out: number of records; 0 ends the batch, because no more are there or damage follows
 */
static err_t poll_records(struct catalogue *c, size_t room, int timeout_ms, struct damage_sighting *damage, size_t *n)
{
  size_t n_max = room < CATALOGUE_POLL_ITEMS ? room : CATALOGUE_POLL_ITEMS;
  struct topic_events events;

  topic_reader_poll(c->topic.reader, n_max, timeout_ms, c->gather.records, n, &events);
  TRY(topic_events_verify_access(&events, c->topic.name));
  if (events.is_out_of_range)
    TRY(note_out_of_range(c, &events, damage));
  for (size_t i = 0; i < *n; i++)
    TRY(add_record(c, &c->gather.records[i]));
  if (events.is_damaged) {
    *damage = (struct damage_sighting){ true, events.damaged_partition, events.damaged_offset };
    *n = 0; /* the records before the damage are applied */
  }
  return ERR_OK;
}

/* Poll once. If the records before could wait, so can these, probably: stand back for them. One that cannot
 * wait is late by one poll at most. In bulk another thread may be writing the store, so nothing is asked of it. */
static err_t poll_next(struct catalogue *c, bool is_bulk, size_t room, int timeout_ms, struct damage_sighting *damage,
                       size_t *n)
{
  size_t first = c->batch.n;

  if (c->gather.newest_can_wait)
    stand_back_enter(&c->stand_back);
  catalogue_relegate_client(c);
  err_code_t err = poll_records(c, room, timeout_ms, damage, n);
  c->gather.newest_can_wait = err == ERR_OK && !is_bulk && catalogue_can_wait(c, first);
  stand_back_leave(&c->stand_back);
  catalogue_recall_client(c, *n);
  return err;
}

/* When a batch is closed. */
struct limits {
  size_t items;
  size_t bytes;   /* of values */
  int timeout_ms; /* after the first record */
  int wait_ms;    /* for further records when none are there; 0: close the batch then */
};

static struct limits limits_of(const struct catalogue *c, bool is_bulk)
{
  if (is_bulk)
    return (struct limits){ CATALOGUE_BULK_ITEMS, CATALOGUE_BULK_BYTES, CATALOGUE_BULK_MS, POLL_MS };
  return (struct limits){ c->with.config->catalogue.batch_items, SIZE_MAX,
                          (int)config_number(&c->with.config->catalogue.publish_interval_ms), 0 };
}

/* Values of many short texts take twenty times their bytes once they are decoded. */
enum { MEMORY_MAX = 256 << 20 };

static bool is_full(const struct catalogue *c, size_t n, const struct limits *limits)
{
  return n >= limits->items || c->batch.value_bytes >= limits->bytes || c->batch.region.taken_bytes >= MEMORY_MAX;
}

/* Is it of use to wait for further records? */
static bool expects_more(const struct catalogue *c, const struct limits *limits)
{
  return limits->wait_ms > 0 && !catalogue_is_stopping(c) && !topic_positions_have_caught_up(&c->topic.positions);
}

err_t catalogue_gather(struct catalogue *c, bool is_bulk, struct damage_sighting *damage)
{
  struct limits limits = limits_of(c, is_bulk);
  int64_t end_ns = 0;
  size_t n, n_total = 0;

  *damage = (struct damage_sighting){ 0 };
  catalogue_begin_asking(c);
  item_batch_reset(&c->batch);
  TRY(item_batch_reserve(&c->batch, limits.items));
  while (!is_full(c, n_total, &limits)) {
    TRY(catalogue_pass_time(c));
    int wait_ms = catalogue_ms_until_change(c, n_total ? limits.wait_ms : c->has_model_work ? 0 : POLL_MS);
    TRY(poll_next(c, is_bulk, limits.items - n_total, wait_ms, damage, &n));
    n_total += n;
    if (n && !end_ns)
      end_ns = clock_now_ns() + limits.timeout_ms * CLOCK_NS_PER_MS;
    if (damage->is_there || (n == 0 && (n_total == 0 || !expects_more(c, &limits))) || clock_now_ns() >= end_ns)
      break;
  }
  return ERR_OK;
}
