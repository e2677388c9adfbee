/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue thread: open, loop and close. What each step does is in the files that catalogue_state.h lists. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/catalogue/catalogue_format.h"
#include "daemon/catalogue/catalogue_state.h"

/* How often positions are stored without new records. So the downtime computed at the next start is accurate to this
 * interval. */
enum { TOUCH_EVERY_MS = 10 * 60 * 1000 };

/* How long one step may stand back: updates wait for its end. */
enum { STAND_BACK_MS = 200 };

/* Have the positions stored even without new records: after dead letters were settled, and every TOUCH_EVERY_MS. */
static void touch_positions(struct catalogue *c)
{
  int64_t now = clock_now_ns();

  if (letter_window_settle(&c->letters) || now >= c->touch_due_ns) {
    topic_positions_touch(&c->topic.positions);
    c->touch_due_ns = now + TOUCH_EVERY_MS * CLOCK_NS_PER_MS;
  }
}

static err_t step(struct catalogue *c)
{
  struct damage_sighting damage;

  pulse_beat();
  TRY(catalogue_topic_note_reading(c));
  TRY(catalogue_take_batch(c, &damage));
  touch_positions(c);
  TRY(catalogue_pass_batch_on(c, &damage));
  if (damage.is_there)
    return catalogue_note_damage(c, &damage);
  TRY(catalogue_do_upkeep(c));
  TRY(catalogue_retry_damage(c));
  TRY(catalogue_retry_schemas(c));
  TRY(topic_audit_step(&c->audit, &c->topic.positions));
  TRY(catalogue_sweep(c));
  catalogue_say_first_fill(c);
  TRY(catalogue_commit(c));
  TRY(catalogue_step_models(c));
  return catalogue_report_update(c);
}

/* Store the positions once more: partitions that were read to their end are complete as of the stop. */
static err_t store_stop_time(struct catalogue *c)
{
  TRY(catalogue_apply_waiting(c));
  item_batch_reset(&c->batch);
  topic_positions_touch(&c->topic.positions);
  return catalogue_apply(c);
}

static err_t follow(struct catalogue *c)
{
  TRY(catalogue_await_models(c));
  TRY(catalogue_load(c, NULL, 0));
  err_code_t err = catalogue_connect(c);
  while (!catalogue_is_stopping(c)) {
    if (err == ERR_OK)
      err = catalogue_renew(c);
    if (err == ERR_OK)
      err = step(c);
    else if (c->must_stop || !catalogue_is_recoverable(err))
      return err;
    else
      err = catalogue_recover(c, err);
  }
  return err == ERR_OK ? store_stop_time(c) : ERR_STOPPING;
}

static void *run(void *context)
{
  struct catalogue *c = context;

  pulse_begin(&c->with.alarm->pulses, &c->pulse, "catalogue");
  if (!stand_back_init(&c->stand_back))
    log_info("no_background", "note=\"filling and removing generations compete with searches: the system does not let "
                              "a thread raise its priority again; LimitNICE=+0 would\"");
  err_code_t err = follow(c);
  pulse_rest();
  if (err != ERR_OK && err != ERR_STOPPING)
    alarm_raise(c->with.alarm, "catalogue", err);
  return NULL;
}

/* Generations of models, and the rules for the parts of items. */
static err_t open_models(struct catalogue *c)
{
  struct models_context context = {
    c->with.config, c->with.kafka, c->with.engine, c->with.store, c->with.delivery, c->with.counters, &c->stand_back,
  };

  c->gather.rules = (struct item_batch_rules){ c->with.engine, c->with.config->catalogue.unknown_spaces, NULL };
  if (!*c->with.config->models.topic)
    return ERR_OK;
  TRY(models_open(&context, &c->models));
  c->gather.rules.models = models_state(c->models);
  return ERR_OK;
}

err_t catalogue_open(const struct catalogue_context *context, struct catalogue **out)
{
  AUTO(catalogue_close) struct catalogue *c = NULL;
  const struct config *config = context->config;
  struct kafka_layers layers = kafka_setup_reader_layers(context->kafka, &config->catalogue.kafka, "catalogue");

  TRY(mem_array(1, sizeof *c, &c));
  c->with = *context;
  pthread_mutex_init(&c->load.lock, NULL);
  catalogue_report_init(&c->report);
  catalogue_rebuild_init(config, context->store, &c->rebuild);
  store_set_limit(context->store, config->catalogue.max_items);
  TRY(open_models(c));
  TRY(letter_window_init(&c->letters));
  TRY(catalogue_format_init(config, &c->gather.format));
  TRY(item_batch_init(config->catalogue.batch_items, &c->batch));
  TRY(mem_array(CATALOGUE_POLL_ITEMS, sizeof *c->gather.records, &c->gather.records));
  TRY(followed_topic_init(&layers, config->catalogue.topic, &c->topic));
  topic_audit_init(&layers, config->catalogue.topic, (int64_t)config->catalogue.partitions_refresh_ms * CLOCK_NS_PER_MS,
                   &c->audit);
  if (pthread_create(&c->thread, NULL, run, c) != 0)
    FAIL(ERR_SYSTEM, "the catalogue thread cannot be started");
  c->has_thread = true;
  *out = c;
  c = NULL;
  return ERR_OK;
}

struct models *catalogue_models(struct catalogue *c)
{
  return c->models;
}

void catalogue_bring_forward(struct catalogue *c)
{
  stand_back_relieve(&c->stand_back, STAND_BACK_MS * CLOCK_NS_PER_MS);
}

void catalogue_ask_to_stop(struct catalogue *c)
{
  atomic_store(&c->is_stopping, true);
  stand_back_end(&c->stand_back); /* somebody waits for its end now, and main does not look any more */
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
  models_close(&(*c)->models);
  topic_audit_fini(&(*c)->audit);
  followed_topic_fini(&(*c)->topic);
  item_batch_fini(&(*c)->batch);
  item_batch_fini(&(*c)->ahead.storing);
  letter_window_fini(&(*c)->letters);
  mapping_fini(&(*c)->gather.format.mapping);
  catalogue_report_fini(&(*c)->report);
  pthread_mutex_destroy(&(*c)->load.lock);
  mem_free(&(*c)->damages.items);
  mem_free(&(*c)->waits.items);
  mem_free(&(*c)->gather.records);
  region_fini(&(*c)->scratch);
  mem_free(c);
}
