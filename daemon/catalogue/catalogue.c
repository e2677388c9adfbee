/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue thread: its loop, its beginning and its end. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/catalogue/catalogue_state.h"

/* The store knows how long the daemon was away, to so much. */
enum { TOUCH_EVERY_MS = 10 * 60 * 1000 };

enum catalogue_phase catalogue_phase(const struct catalogue *c)
{
  return (enum catalogue_phase)atomic_load(&c->phase);
}

bool catalogue_is_serving(const struct catalogue *c)
{
  return atomic_load(&c->is_serving);
}

struct catalogue_report *catalogue_report_of(struct catalogue *c)
{
  return &c->report;
}

const char *catalogue_phase_name(enum catalogue_phase phase)
{
  static const char *const names[] = {
    [CATALOGUE_LOADING] = "loading the store",
    [CATALOGUE_CONNECTING] = "waiting for Kafka",
    [CATALOGUE_CATCHING_UP] = "catching up",
    [CATALOGUE_REBUILDING] = "rebuilding from the log",
    [CATALOGUE_AWAITING] = "waiting for sluicectl rebuild accept",
    [CATALOGUE_FULL] = "full: catalogue.max_items is reached",
    [CATALOGUE_DISK_FULL] = "paused: the store's disk is full",
    [CATALOGUE_DAMAGED] = "paused: the broker's log is damaged",
    [CATALOGUE_LIVE] = "live",
  };

  return names[phase];
}

const char *catalogue_phase_word(enum catalogue_phase phase)
{
  static const char *const words[] = {
    [CATALOGUE_LOADING] = "loading",         [CATALOGUE_CONNECTING] = "connecting",
    [CATALOGUE_CATCHING_UP] = "catching_up", [CATALOGUE_REBUILDING] = "rebuilding",
    [CATALOGUE_AWAITING] = "awaiting",       [CATALOGUE_FULL] = "full",
    [CATALOGUE_DISK_FULL] = "disk_full",     [CATALOGUE_DAMAGED] = "damaged",
    [CATALOGUE_LIVE] = "live",
  };

  return words[phase];
}

void catalogue_set_phase(struct catalogue *c, enum catalogue_phase phase, const char *problem)
{
  catalogue_report_problem(&c->report, problem ? problem : "");
  if (catalogue_phase(c) == phase)
    return;
  atomic_store(&c->phase, (int)phase);
  log_info("catalogue", "phase=%s", log_quote(span_of_str(catalogue_phase_name(phase))));
}

bool catalogue_is_stopping(const struct catalogue *c)
{
  return atomic_load(&c->is_stopping);
}

uint64_t catalogue_n_followed(const struct catalogue *c)
{
  struct store_stats stats;

  store_stats(c->with.store, &stats);
  return store_is_rebuilding(c->with.store) ? stats.n_rebuilt_items : stats.n_items;
}

err_t catalogue_list_seen(struct catalogue *c, struct position **out, size_t *n)
{
  *n = 0;
  TRY(region_array(&c->scratch, c->log.at.n, sizeof **out, out));
  for (size_t i = 0; i < c->log.at.n; i++) {
    if (!c->log.at.items[i].is_held)
      (*out)[(*n)++] = c->log.at.items[i].position.at;
  }
  return ERR_OK;
}

/* Positions change without records, too: a letter has arrived, or the store is told that we are here. */
static void note_time(struct catalogue *c)
{
  int64_t now = clock_now_ns();

  if (letter_window_settle(&c->letters) || now >= c->touch_due_ns) {
    log_positions_touch(&c->log.at);
    c->touch_due_ns = now + TOUCH_EVERY_MS * CLOCK_NS_PER_MS;
  }
}

/* A look back that gets no answer is begun anew: the log itself is read on. */
static err_t look_back(struct catalogue *c)
{
  err_code_t err = log_audit_step(&c->audit, &c->log.at);

  return err_class(err) == ERR_CLASS_RETRY ? log_audit_begin(&c->audit, &c->log.at) : err;
}

static err_t step(struct catalogue *c)
{
  struct damage_sighting damage;

  pulse_beat();
  TRY(catalogue_log_note_reading(&c->log));
  TRY(catalogue_gather(c, &damage));
  note_time(c);
  if (c->batch.n > 0 || log_positions_is_changed(&c->log.at))
    TRY(catalogue_apply(c));
  catalogue_reader_release(c->log.reader);
  if (damage.is_there)
    return catalogue_note_damage(c, &damage);
  TRY(catalogue_note_progress(c));
  TRY(catalogue_retry_damage(c));
  TRY(look_back(c));
  return catalogue_tell(c);
}

/* Most troubles are waited out. */
static err_t recover(struct catalogue *c, err_code_t err)
{
  catalogue_reader_release(c->log.reader);
  if (err == ERR_DISCONTINUITY)
    return catalogue_begin_again(c);
  if (err == ERR_KAFKA_DAMAGED)
    return catalogue_go_around_damage(c);
  if (err == ERR_STORE_FULL)
    return catalogue_wait_for_disk(c);
  return catalogue_reconnect(c);
}

static bool is_recoverable(err_code_t err)
{
  return err == ERR_DISCONTINUITY || err_class(err) == ERR_CLASS_RETRY;
}

/* The last thing that the store learns is when we left. */
static err_t note_departure(struct catalogue *c)
{
  item_batch_reset(&c->batch);
  log_positions_touch(&c->log.at);
  return catalogue_apply(c);
}

static err_t follow(struct catalogue *c)
{
  TRY(catalogue_load(c));
  err_code_t err = catalogue_connect(c);
  while (!catalogue_is_stopping(c)) {
    if (err == ERR_OK)
      err = step(c);
    else if (c->stops_here || !is_recoverable(err))
      return err;
    else
      err = recover(c, err);
  }
  return err == ERR_OK ? note_departure(c) : ERR_STOPPING;
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
  catalogue_report_init(&c->report);
  catalogue_rebuild_init(config, context->store, &c->rebuild);
  store_set_limit(context->store, config->catalogue.max_items);
  TRY(letter_window_init(&c->letters));
  TRY(item_batch_init(config->catalogue.batch_items, &c->batch));
  TRY(mem_array(CATALOGUE_POLL_ITEMS, sizeof *c->records, &c->records));
  TRY(catalogue_log_init(&layers, config->catalogue.topic, context->store, &c->log));
  log_audit_init(&layers, config->catalogue.topic,
                 (int64_t)config->catalogue.partitions_refresh_ms * CLOCK_NS_PER_MS, &c->audit);
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

void catalogue_stop(struct catalogue *c)
{
  catalogue_ask_to_stop(c);
  if (c->has_thread)
    pthread_join(c->thread, NULL);
  c->has_thread = false;
}

void catalogue_close(struct catalogue **c)
{
  if (!*c)
    return;
  catalogue_stop(*c);
  log_audit_fini(&(*c)->audit);
  catalogue_log_fini(&(*c)->log);
  item_batch_fini(&(*c)->batch);
  letter_window_fini(&(*c)->letters);
  catalogue_report_fini(&(*c)->report);
  mem_free(&(*c)->damages.items);
  mem_free(&(*c)->records);
  region_fini(&(*c)->scratch);
  mem_free(c);
}
