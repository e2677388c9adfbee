/* SPDX-License-Identifier: Apache-2.0 */
/* Open the parts of the daemon in order, step them, and close them in reverse order; decide whether it is ready. */
#include "daemon/service.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/errand.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/canary/canary.h"
#include "daemon/config/config_shard.h"
#include "daemon/http/http.h"
#include "daemon/http/http_hosts.h"
#include "daemon/http/status.h"
#include "daemon/models/model_start.h"
#include "daemon/models/models.h"
#include "daemon/queries/query_thread.h"
#include "daemon/setup/engine_setup.h"
#include "daemon/setup/tracing_setup.h"
#include "engine/backend/cuda_module.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_trouble.h"

/* How long a stop waits for the delivery of pending replies, and then for Kafka clients to close. */
enum { DELIVERY_TIMEOUT_S = 9, CLIENTS_TIMEOUT_S = 5, CLIENTS_STEP_MS = 100 };

struct service {
  struct counters counters;
  struct alarm alarm;
  struct readiness readiness;
  struct kafka_setup kafka;
  struct engine *engine;
  struct store *store;
  struct offset_tracker *tracker; /* which queries are answered */
  struct tracing *tracing;        /* NULL: there is no collector */
  struct delivery *delivery;
  struct catalogue *catalogue;
  struct seen *seen; /* NULL: no seen topic is read */
  struct query_thread *query_thread;
  struct canary *canary; /* NULL: there are none */
  struct http *http;
  struct status status;
  bool has_started_queries;
  _Atomic bool is_hurried; /* a stop must no longer wait for Kafka */
  pthread_mutex_t lock;    /* guards `delivery` for hurry() */
};

/* All shards must send the parts of a query to the same partition. */
static const struct kafka_property one_partitioner[] = { { "partitioner", "consistent_random" } };

static err_t open_engine(const struct config *config, struct service *s)
{
  AUTO(mem_free) struct engine_space *spaces = NULL;
  AUTO(region_fini) struct region region = { 0 };
  struct engine_config engine_config;

  TRY(mem_array(config->n_spaces, sizeof *spaces, &spaces));
  engine_setup_make(config, spaces, &engine_config);
  TRY(model_start_choose(config, s->store, &region, spaces));
  s->status.isa = engine_config.isa;
  TRY(engine_setup_open(config, &engine_config, &s->engine));
  return engine_setup_share(config, s->engine);
}

static void log_backend(const struct engine *e)
{
  struct device device;
  size_t n_failed;
  const char *name = engine_backend_name(e, &n_failed);

  if (strcmp(name, "cuda") == 0 && cuda_module_find_device(&device) == ERR_OK)
    log_info("backend", "name=%s device=%s memory_bytes=%zu compute_capability=%d", name,
             log_quote(span_of_str(device.name)), device.memory_bytes, device.compute_capability);
  else
    log_info("backend", "name=%s", name);
}

static err_t open_delivery(const struct config *config, struct service *s)
{
  struct kafka_layers layers = kafka_setup_layers(&s->kafka, &config->query.answer_kafka, false);
  bool is_shard = config_is_shard(config);

  if (is_shard)
    kafka_layers_add(&layers, one_partitioner, 1);
  struct delivery_config delivery = {
    .layers = &layers,
    .query_topic = config->query.topic,
    .answer_topic = is_shard ? config->query.partials_topic : config->query.answer_topic,
    .shard = (uint32_t)config->catalogue.shard,
    .n_shards = (uint32_t)config->catalogue.n_shards,
    .dead_letter_topic = config->catalogue.dead_letter_topic,
    .has_reply_topics = config->query.reply_topics.n > 0 && !is_shard,
    .reply_timeout_ms = config->query.reply_timeout_ms,
    .counters = &s->counters,
    .tracker = s->tracker,
    .tracing = s->tracing,
    .alarm = &s->alarm,
  };

  return delivery_open(&delivery, &s->delivery);
}

static err_t open_catalogue(const struct config *config, struct service *s)
{
  struct catalogue_context context = {
    config, &s->kafka, s->engine, s->store, s->delivery, &s->counters, &s->alarm,
  };

  return catalogue_open(&context, &s->catalogue);
}

static err_t open_seen(const struct config *config, struct service *s)
{
  struct seen_context context = { config, &s->kafka, s->delivery, &s->counters, &s->alarm };

  return *config->seen.topic ? seen_open(&context, &s->seen) : ERR_OK;
}

/* A shard has no trials: its items are some of the catalogue's, and the others' would be missing. */
static bool has_trials(const struct config *config)
{
  struct http_hosts hosts;

  http_hosts_init(config->http.listen, &config->http.hosts, &hosts);
  return !config_is_shard(config) &&
         (config->http.trials == CONFIG_TRIALS_ON || (config->http.trials == CONFIG_TRIALS_AUTO && hosts.is_loopback));
}

static err_t open_queries(const struct config *config, struct service *s)
{
  struct models *models = catalogue_models(s->catalogue);
  struct query_thread_context context = {
    .config = config,
    .kafka = &s->kafka,
    .engine = s->engine,
    .seen = s->seen,
    .delivery = s->delivery,
    .tracker = s->tracker,
    .counters = &s->counters,
    .alarm = &s->alarm,
    .tracing = s->tracing,
    .has_trials = has_trials(config),
    .shadows = models ? models_shadows(models) : NULL,
    .switches = models ? models_switches(models) : NULL,
  };

  return query_thread_open(&context, &s->query_thread);
}

static err_t open_canary(const struct config *config, struct service *s)
{
  struct canary_context context = { config, &s->kafka, s->engine, &s->counters, &s->alarm };

  return config->canary.interval_ms > 0 ? canary_open(&context, &s->canary) : ERR_OK;
}

/* Tell the store what the configuration says of it. If the engine refuses the configuration, the store never gets it:
 * attributes that are dropped by mistake would be lost. */
static err_t configure_store(const struct config *config, struct service *s)
{
  err_code_t err = store_set_shard(s->store, config->catalogue.shard, config->catalogue.n_shards);
  if (err == ERR_CONFIG)
    return config_blame(config, "catalogue.shard.of", err);
  TRY(err);
  err = store_set_attributes(s->store, &config->attributes);
  return err == ERR_CONFIG ? config_blame(config, "attributes", err) : err;
}

static err_t open_parts(const struct config *config, struct service *s)
{
  s->status.config = config;
  s->status.readiness = &s->readiness;
  s->status.kafka = &s->kafka;
  s->status.counters = &s->counters;
  s->status.started_ns = clock_now_ns();
  readiness_set_silently(&s->readiness, "starting");
  TRY(alarm_init(&s->alarm));
  TRY(store_open(config->store_path, &s->store));
  TRY(open_engine(config, s));
  log_backend(s->engine);
  TRY(configure_store(config, s));
  TRY(kafka_setup_open(config, &s->kafka));
  TRY(offset_tracker_open(&s->tracker));
  TRY(tracing_setup_open(config, &s->counters, &s->alarm, &s->tracing));
  TRY(open_delivery(config, s));
  TRY(open_catalogue(config, s));
  TRY(open_seen(config, s));
  TRY(open_queries(config, s));
  TRY(open_canary(config, s));
  s->status.engine = s->engine;
  s->status.store = s->store;
  s->status.catalogue = s->catalogue;
  s->status.seen = s->seen;
  s->status.trial = query_thread_trial(s->query_thread);
  history_init(&s->status.history);
  s->status.searches = query_thread_counters(s->query_thread);
  return http_open(config->http.listen, &config->http.hosts, &s->status, &s->http);
}

static err_code_t open_all(void *service, const struct config *config)
{
  struct service *s = service;

  TRY(open_parts(config, s));
  log_info("started", "version=%s isa=%s config=%s", SLUICE_VERSION, isa_name(s->status.isa), config->path);
  return ERR_OK;
}

/* Return why no client gets through to its brokers if that is known, and the other reason if not. */
static const char *in_trouble_or(const char *reason)
{
  const char *trouble = kafka_trouble_newest();

  return trouble ? trouble : reason;
}

/* Would a retired generation answer, without its parts? Other daemons of the group can do better. */
static bool are_models_lacking(const struct service *s)
{
  const struct models *models = catalogue_models(s->catalogue);

  return models && models_lack_parts(models);
}

/* May queries be read? Later they are, however far the catalogue is behind. */
static bool may_start_queries(const struct service *s)
{
  uint64_t max_lag = s->status.config->catalogue.ready_max_lag;

  return catalogue_is_serving(s->catalogue) && !are_models_lacking(s) &&
         (max_lag == 0 || catalogue_report_is_near(catalogue_report_of(s->catalogue), max_lag));
}

/* Return why the daemon is not ready, or NULL. Nothing else decides this. */
static const char *why_not_ready(const struct service *s)
{
  enum catalogue_phase phase = catalogue_phase(s->catalogue);
  const struct models *models = catalogue_models(s->catalogue);
  const char *denied = query_thread_denied(s->query_thread); /* asked once: it may end at any time */

  if (models && !models_have_caught_up(models))
    return in_trouble_or("reading the topic of models");
  if (phase == CATALOGUE_CONNECTING)
    return in_trouble_or(catalogue_phase_name(phase));
  if (phase != CATALOGUE_LIVE)
    return catalogue_phase_name(phase);
  if (are_models_lacking(s))
    return "waiting for a model: only a retired generation could answer (sluicectl model list)";
  if (denied)
    return denied;
  if (!s->has_started_queries && s->status.config->catalogue.ready_max_lag > 0)
    return in_trouble_or("catching up: more than catalogue.ready_max_lag records are not applied");
  if (query_thread_is_topic_away(s->query_thread))
    return "waiting for the query topic";
  if (!query_thread_is_assigned(s->query_thread))
    return in_trouble_or("waiting for the query partitions");
  if (delivery_is_answer_topic_away(s->delivery))
    return in_trouble_or("waiting for the answer topic");
  if (s->seen && !atomic_load(&seen_progress_of(s->seen)->has_caught_up))
    return in_trouble_or("reading the seen topic");
  return NULL;
}

/* If the certificate of the consumer cannot be used now, the next step tries again. */
static err_t start_queries(struct service *s)
{
  TRY(query_thread_join(s->query_thread, &s->has_started_queries));
  if (!s->has_started_queries)
    return ERR_OK;
  delivery_prepare(s->delivery);
  return query_thread_start(s->query_thread);
}

/* Start reading queries once the catalogue is served, and update the readiness. */
static err_code_t step(void *service)
{
  struct service *s = service;

  catalogue_bring_forward(s->catalogue);
  if (!s->has_started_queries && may_start_queries(s))
    TRY(start_queries(s));
  readiness_set(&s->readiness, why_not_ready(s));
  status_step(&s->status);
  return ERR_OK;
}

static void print_line(void *service, char *text, size_t n)
{
  struct service *s = service;

  status_line(&s->status, text, n);
}

/* Wait until all Kafka clients are closed. They close in parallel. Returns false if some were left behind. */
static bool wait_for_clients(const struct service *s)
{
  int64_t until_ns = clock_now_ns() + CLIENTS_TIMEOUT_S * CLOCK_NS_PER_S;

  while (kafka_closing_wait(clock_now_ns() + CLIENTS_STEP_MS * CLOCK_NS_PER_MS) > 0) {
    if (clock_now_ns() >= until_ns || atomic_load(&s->is_hurried))
      break;
  }
  return kafka_closing_log_left() == 0;
}

static void hurry(void *service)
{
  struct service *s = service;

  atomic_store(&s->is_hurried, true);
  pthread_mutex_lock(&s->lock);
  if (s->delivery)
    delivery_give_up_at(s->delivery, clock_now_ns());
  pthread_mutex_unlock(&s->lock);
}

/* Limit the wait for deliveries, unless hurry() has ended it already. */
static void set_delivery_limit(struct service *s)
{
  pthread_mutex_lock(&s->lock);
  if (s->delivery && !atomic_load(&s->is_hurried))
    delivery_give_up_at(s->delivery, clock_now_ns() + DELIVERY_TIMEOUT_S * CLOCK_NS_PER_S);
  pthread_mutex_unlock(&s->lock);
}

static void close_delivery(struct service *s)
{
  if (s->delivery)
    delivery_drain(s->delivery); /* while hurry() can still end the wait */
  pthread_mutex_lock(&s->lock);
  struct delivery *d = s->delivery;
  s->delivery = NULL;
  pthread_mutex_unlock(&s->lock);
  delivery_close(&d);
}

/* Has every thread ended? */
static bool has_left_nobody(void)
{
  bool is_loading = errand_n_left() > 0;

  if (is_loading)
    log_info("load_left", "note=\"the process ends while a model file is being fetched or loaded\"");
  return !is_loading;
}

/* Close the clients first: they need the embedded broker to close. It has a client of its own. */
static bool close_kafka(struct service *s)
{
  if (!wait_for_clients(s))
    return false;
  kafka_setup_close(&s->kafka);
  return wait_for_clients(s);
}

/* Answer the accepted queries, commit their offsets, and close all parts. */
static bool close_all(void *service)
{
  struct service *s = service;

  readiness_set_silently(&s->readiness, "stopping");
  kafka_closing_together();
  set_delivery_limit(s);
  if (s->catalogue)
    catalogue_ask_to_stop(s->catalogue); /* it stops while the queries are answered */
  if (s->seen)
    seen_ask_to_stop(s->seen);
  if (s->query_thread)
    query_thread_stop(s->query_thread);
  canary_close(&s->canary);
  http_close(&s->http); /* it reads the catalogue's phase */
  if (s->delivery)
    delivery_drain(s->delivery); /* replies must be delivered before their queries are committed */
  if (s->query_thread && !atomic_load(&s->is_hurried))
    query_thread_leave(s->query_thread); /* before anything else is closed: others wait for the partitions */
  if (s->query_thread)
    query_thread_end_comparing(s->query_thread);
  if (s->catalogue)
    catalogue_stop(s->catalogue);
  if (s->seen)
    seen_stop(s->seen);
  close_delivery(s);
  catalogue_close(&s->catalogue); /* after the delivery, which sets flags in its dead letters */
  seen_close(&s->seen);           /* the same */
  store_close(&s->store);
  query_thread_close(&s->query_thread);
  tracing_close(&s->tracing); /* queries and replies had its records */
  offset_tracker_close(&s->tracker);
  engine_close(&s->engine);
  bool is_closed = close_kafka(s);
  if (s->alarm.fd >= 0)
    alarm_fini(&s->alarm);
  return has_left_nobody() && is_closed;
}

/* Zeros, which close_all() accepts, but for what a part has otherwise before it is opened. */
static struct service only = { .alarm.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

const struct role service_role = {
  .service = &only,
  .alarm = &only.alarm,
  .readiness = &only.readiness,
  .stop_note = "answering the accepted queries",
  .open = open_all,
  .step = step,
  .print_line = print_line,
  .close = close_all,
  .hurry = hurry,
};
