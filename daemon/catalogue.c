#include "daemon/catalogue.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/age_watch.h"
#include "daemon/catalogue_log.h"
#include "daemon/item_batch.h"
#include "daemon/pulse.h"

enum { RETRY_MS = 500, POLL_MS = 50, LOAD_CHUNK = 4096 };

struct catalogue {
  struct catalogue_context with;
  struct catalogue_log log;
  struct item_batch batch;
  struct catalogue_record *records; /* [batch_items] */
  struct region scratch;            /* positions of one batch */
  struct age_watch ages;
  struct pulse pulse;
  int64_t refresh_due_ns;
  uint64_t n_unusable; /* stored items that the models can no longer use */
  _Atomic int phase;
  _Atomic bool is_stopping;
  pthread_t thread;
  bool has_thread;
};

enum catalogue_phase catalogue_phase(const struct catalogue *c)
{
  return (enum catalogue_phase)atomic_load(&c->phase);
}

const char *catalogue_phase_name(enum catalogue_phase phase)
{
  switch (phase) {
  case CATALOGUE_LOADING:
    return "loading the store";
  case CATALOGUE_CONNECTING:
    return "waiting for Kafka";
  case CATALOGUE_CATCHING_UP:
    return "catching up";
  case CATALOGUE_REBUILDING:
    return "rebuilding from the log";
  case CATALOGUE_LIVE:
    return "live";
  }
  return "?";
}

static void set_phase(struct catalogue *c, enum catalogue_phase phase)
{
  if (catalogue_phase(c) == phase)
    return;
  atomic_store(&c->phase, (int)phase);
  log_info("catalogue", "phase=%s", log_quote(span_of_str(catalogue_phase_name(phase))));
}

static bool is_stopping(const struct catalogue *c)
{
  return atomic_load(&c->is_stopping);
}

/* ---- Filling the arenas from the store ---- */

/* Leave out the stored parts that no space can use: the space is not configured, or its model has other sizes now. */
static void drop_unusable_parts(struct catalogue *c, struct item_change *change)
{
  struct item_change one = *change;
  size_t n = 0;

  one.n_parts = 1;
  for (size_t i = 0; i < change->n_parts; i++) {
    one.parts = &change->parts[i];
    if (engine_check_item(c->with.engine, &one) == ERR_OK)
      change->parts[n++] = change->parts[i];
    else if (c->n_unusable++ == 0)
      log_warn("stored_part_unusable", "key=%s reason=%s note=\"it is served again once it is sent again\"",
               log_quote(change->key), log_failure());
  }
  change->n_parts = n;
}

static err_code_t load_chunk(void *context, struct item_change *changes, size_t n)
{
  struct catalogue *c = context;

  pulse_beat();
  if (is_stopping(c))
    return err_set(ERR_STOPPING, __FILE__, __LINE__, "the daemon is stopping");
  for (size_t i = 0; i < n; i++)
    drop_unusable_parts(c, &changes[i]);
  return engine_apply(c->with.engine, changes, n, NULL, 0);
}

static err_t load_store(struct catalogue *c)
{
  int64_t begin = clock_now_ns();
  struct store_stats stats;

  TRY(store_scan(c->with.store, LOAD_CHUNK, load_chunk, c));
  store_stats(c->with.store, &stats);
  log_info("store_loaded", "items=%" PRIu64 " unusable_parts=%" PRIu64 " took_ms=%" PRId64, stats.n_items,
           c->n_unusable, (clock_now_ns() - begin) / CLOCK_NS_PER_MS);
  return ERR_OK;
}

/* ---- Taking up the log ---- */

/* The topic does not continue the store: begin again from the log's first record, if that is the policy. The former
 * items are served until it has been read. */
static err_t handle_discontinuity(struct catalogue *c)
{
  bool stops = c->with.config->catalogue.stops_on_discontinuity;

  counters_add(&c->with.counters->discontinuities, 1);
  log_event(stops ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "catalogue_discontinuity", "topic=%s policy=%s reason=%s",
            c->with.config->catalogue.topic, stops ? "stop" : "rebuild", log_failure());
  if (stops) {
    char reason[512];
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(ERR_DISCONTINUITY,
         "%s; catalogue.on_discontinuity is `stop`: set it to `rebuild` to read the topic from its first record",
         reason);
  }
  set_phase(c, CATALOGUE_REBUILDING);
  return store_begin_rebuild(c->with.store);
}

/* The watermark becomes what is known of this log: it may be another one than the store's, and then go back. */
static err_t log_watermark(struct catalogue *c, struct position **positions)
{
  region_reset(&c->scratch);
  TRY(region_array(&c->scratch, c->log.at.n, sizeof **positions, positions));
  for (size_t i = 0; i < c->log.at.n; i++)
    (*positions)[i] = (struct position){ (int32_t)i, c->log.at.items[i].position.next };
  return ERR_OK;
}

static err_t publish_log(struct catalogue *c)
{
  struct position *positions;

  if (store_is_rebuilding(c->with.store))
    return ERR_OK; /* what is searched came from the former log */
  TRY(log_watermark(c, &positions));
  return engine_set_positions(c->with.engine, positions, c->log.at.n);
}

/* Take up the log, waiting for broker and topic as long as it takes. */
static err_t connect(struct catalogue *c)
{
  err_code_t last_err = ERR_OK;

  if (catalogue_phase(c) != CATALOGUE_REBUILDING)
    set_phase(c, CATALOGUE_CONNECTING);
  while (!is_stopping(c)) {
    pulse_beat();
    err_code_t err = catalogue_log_take_up(&c->log);
    if (err == ERR_OK) {
      set_phase(c, store_is_rebuilding(c->with.store) ? CATALOGUE_REBUILDING : CATALOGUE_CATCHING_UP);
      return publish_log(c);
    }
    if (err == ERR_DISCONTINUITY) {
      TRY(handle_discontinuity(c));
      continue;
    }
    if (err_class(err) != ERR_CLASS_RETRY)
      return err;
    if (last_err != err)
      log_warn("catalogue_waiting", "reason=%s", log_failure());
    last_err = err;
    clock_sleep_ns(RETRY_MS * CLOCK_NS_PER_MS);
  }
  return ERR_OK;
}

/* ---- Applying batches ---- */

static void count_batch(struct catalogue *c, const struct store_effects *effects)
{
  int64_t now_ms = clock_unix_ms();
  uint64_t n_deleted = 0;

  age_watch_look(&c->ages);
  for (size_t i = 0; i < effects->n_changes; i++) {
    int64_t age_ms = now_ms - effects->changes[i].timestamp_ms;
    n_deleted += effects->changes[i].is_delete;
    if (age_watch_believes(&c->ages, age_ms))
      hist_add(&c->with.counters->visible_us, age_ms > 0 ? (uint64_t)age_ms * 1000 : 0);
  }
  counters_add(&c->with.counters->deleted, n_deleted);
  counters_add(&c->with.counters->applied, effects->n_changes - n_deleted);
  counters_add(&c->with.counters->replayed, c->batch.n - effects->n_changes);
  counters_add(&c->with.counters->batches, 1);
}

/* Store the batch, then publish it. */
static err_t apply_batch(struct catalogue *c)
{
  struct store_position *positions;
  struct store_effects effects;
  size_t n_positions;

  if (!delivery_wait_for_dead_letters(c->with.delivery)) {
    atomic_store(&c->is_stopping, true); /* a later batch must not be stored over this one, which is read again */
    return ERR_OK;
  }
  region_reset(&c->scratch);
  TRY(region_array(&c->scratch, c->log.at.n, sizeof *positions, &positions));
  n_positions = log_positions_changed(&c->log.at, positions);
  TRY(store_apply(c->with.store, c->batch.changes, c->batch.n, positions, n_positions, &effects));

  struct position *seen;
  count_batch(c, &effects);
  if (store_is_rebuilding(c->with.store))
    return ERR_OK;
  TRY(region_array(&c->scratch, n_positions, sizeof *seen, &seen));
  for (size_t i = 0; i < n_positions; i++)
    seen[i] = (struct position){ positions[i].partition, positions[i].next };
  return engine_apply(c->with.engine, effects.changes, effects.n_changes, seen, n_positions);
}

static err_t add_record(struct catalogue *c, const struct catalogue_record *record)
{
  const struct config *config = c->with.config;
  bool is_new;

  if (record->is_end) {
    log_positions_at_end(&c->log.at, record->partition, record->offset);
    return ERR_OK;
  }
  TRY(log_positions_take(&c->log.at, record, &is_new));
  if (!is_new)
    return ERR_OK;
  return item_batch_add(&c->batch, c->with.engine, c->with.delivery, config->catalogue.topic,
                        config->catalogue.dead_letter_topic, record);
}

/* Gather one batch: what is there, and what comes within the publish interval while more keeps coming. */
static err_t gather(struct catalogue *c)
{
  const struct config *config = c->with.config;
  int64_t end_ns = 0;
  int timeout_ms = POLL_MS;

  item_batch_reset(&c->batch);
  for (size_t n_total = 0; n_total < config->catalogue.batch_items;) {
    struct catalogue_events events;
    size_t n;
    catalogue_reader_poll(c->log.reader, config->catalogue.batch_items - n_total, timeout_ms, c->records, &n, &events);
    if (events.is_out_of_range)
      FAIL(ERR_DISCONTINUITY, "partition %" PRId32 ": %s", events.out_of_range_partition, events.reason);
    if (events.is_topic_away)
      FAIL(ERR_KAFKA_RETRY, "topic %s is away: when it is back, it has to be the same", config->catalogue.topic);
    for (size_t i = 0; i < n; i++)
      TRY(add_record(c, &c->records[i]));
    n_total += n;
    if (n_total && !end_ns)
      end_ns = clock_now_ns() + (int64_t)config->catalogue.publish_interval_ms * CLOCK_NS_PER_MS;
    if (n == 0 || clock_now_ns() >= end_ns)
      break;
    timeout_ms = 0;
  }
  return ERR_OK;
}

/* ---- Following the log ---- */

struct feed {
  struct catalogue *catalogue;
  struct engine_filling *filling;
};

static err_code_t feed_chunk(void *context, struct item_change *changes, size_t n)
{
  struct feed *feed = context;

  if (is_stopping(feed->catalogue))
    return err_set(ERR_STOPPING, __FILE__, __LINE__, "the daemon is stopping");
  for (size_t i = 0; i < n; i++)
    drop_unusable_parts(feed->catalogue, &changes[i]);
  return engine_take(feed->filling, changes, n);
}

static err_code_t feed_store(void *context, struct engine_filling *filling)
{
  struct catalogue *c = context;
  struct feed feed = { c, filling };

  return store_scan(c->with.store, LOAD_CHUNK, feed_chunk, &feed);
}

/* The log has been read: what was rebuilt from it takes the place of the former catalogue. */
static err_t finish_rebuild(struct catalogue *c)
{
  struct position *positions;

  if (!store_is_rebuilding(c->with.store))
    return ERR_OK;
  TRY(store_finish_rebuild(c->with.store));
  TRY(log_watermark(c, &positions));
  return engine_replace(c->with.engine, feed_store, c, positions, c->log.at.n);
}

static err_t note_progress(struct catalogue *c)
{
  if (catalogue_phase(c) == CATALOGUE_LIVE || !log_positions_has_caught_up(&c->log.at))
    return ERR_OK;
  TRY(finish_rebuild(c));
  if (is_stopping(c))
    return ERR_OK;
  set_phase(c, CATALOGUE_LIVE);
  return ERR_OK;
}

/* Partitions that were added to the topic are read from their first record. */
static err_t look_for_partitions(struct catalogue *c)
{
  int64_t now = clock_now_ns();

  if (now < c->refresh_due_ns)
    return ERR_OK;
  c->refresh_due_ns = now + (int64_t)c->with.config->catalogue.partitions_refresh_ms * CLOCK_NS_PER_MS;
  err_code_t err = catalogue_log_take_up_new(&c->log);
  if (err_class(err) != ERR_CLASS_RETRY)
    return err;
  log_warn("partitions_unknown", "reason=%s", log_failure());
  return ERR_OK;
}

static err_t step(struct catalogue *c)
{
  pulse_beat();
  TRY(gather(c));
  if (c->batch.n > 0 || log_positions_is_changed(&c->log.at))
    TRY(apply_batch(c));
  catalogue_reader_release(c->log.reader);
  if (is_stopping(c))
    return ERR_OK; /* the batch may not have been applied: no progress to note */
  TRY(note_progress(c));
  return look_for_partitions(c);
}

static err_t begin_again(struct catalogue *c)
{
  TRY(handle_discontinuity(c));
  return connect(c);
}

static err_t reconnect(struct catalogue *c)
{
  log_warn("catalogue_waiting", "reason=%s", log_failure());
  return connect(c);
}

static err_t follow(struct catalogue *c)
{
  TRY(load_store(c));
  TRY(connect(c));
  while (!is_stopping(c)) {
    err_code_t err = step(c);
    if (err != ERR_OK)
      catalogue_reader_release(c->log.reader);
    if (err == ERR_DISCONTINUITY)
      TRY(begin_again(c));
    else if (err_class(err) == ERR_CLASS_RETRY)
      TRY(reconnect(c));
    else if (err != ERR_OK)
      return err;
  }
  return ERR_OK;
}

static void *run(void *context)
{
  struct catalogue *c = context;

  pulse_begin(&c->with.alarm->pulses, &c->pulse, "catalogue");
  err_code_t err = follow(c);
  pulse_rest();
  if (err != ERR_OK && err != ERR_STOPPING)
    alarm_raise(c->with.alarm, "catalogue", err);
  return NULL;
}

err_t catalogue_open(const struct catalogue_context *context, struct catalogue **out)
{
  AUTO(catalogue_close) struct catalogue *c = NULL;
  const struct config *config = context->config;
  struct kafka_layers layers = kafka_setup_layers(context->kafka, &config->catalogue.kafka, true);

  TRY(mem_array(1, sizeof *c, &c));
  c->with = *context;
  TRY(item_batch_init(config->catalogue.batch_items, &c->batch));
  TRY(mem_array(config->catalogue.batch_items, sizeof *c->records, &c->records));
  TRY(catalogue_log_init(&layers, config->catalogue.topic, context->store, &c->log));
  if (pthread_create(&c->thread, NULL, run, c) != 0)
    FAIL(ERR_SYSTEM, "the catalogue thread cannot be started");
  c->has_thread = true;
  *out = c;
  c = NULL;
  return ERR_OK;
}

void catalogue_ask_to_stop(struct catalogue *c)
{
  atomic_store(&c->is_stopping, true);
}

void catalogue_close(struct catalogue **c)
{
  if (!*c)
    return;
  catalogue_ask_to_stop(*c);
  if ((*c)->has_thread)
    pthread_join((*c)->thread, NULL);
  catalogue_log_fini(&(*c)->log);
  item_batch_fini(&(*c)->batch);
  mem_free(&(*c)->records);
  region_fini(&(*c)->scratch);
  mem_free(c);
}
