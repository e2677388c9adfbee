/* SPDX-License-Identifier: Apache-2.0 */
/* Creating topics and counting partitions with a short-lived client. Both wait for a topic that was just created. */
#include "ingest/kafka/topics.h"

#include "base/clock.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_topic.h"
#include "ingest/kafka/kafka_trouble.h"

/* A topic that is still unknown after YOUTH_MS is missing, not just new. */
enum { REASON_BYTES = 512, RETRY_PAUSE_MS = 50, YOUTH_MS = 2000, MOMENT_MS = 1500 };

/* A consumer asks for the partitions: asking as a producer could create the topic. */
static const struct kafka_property asker_defaults[] = { { "allow.auto.create.topics", "false" } };

static void destroy(void *object)
{
  kafka_client_destroy(object, 0);
}

static void destroy_client(rd_kafka_t **rk)
{
  if (*rk)
    kafka_closing_run("topics", destroy, *rk);
}

static void destroy_queue(rd_kafka_queue_t **queue)
{
  if (*queue)
    rd_kafka_queue_destroy(*queue);
}

static void destroy_event(rd_kafka_event_t **event)
{
  if (*event)
    rd_kafka_event_destroy(*event);
}

static void destroy_new_topic(rd_kafka_NewTopic_t **topic)
{
  if (*topic)
    rd_kafka_NewTopic_destroy(*topic);
}

static void destroy_options(rd_kafka_AdminOptions_t **options)
{
  if (*options)
    rd_kafka_AdminOptions_destroy(*options);
}

static err_t open_client(const struct kafka_layers *layers, rd_kafka_type_t type, rd_kafka_t **out)
{
  struct kafka_layers all = *layers;
  rd_kafka_conf_t *conf;

  if (type == RD_KAFKA_CONSUMER)
    all = kafka_layers_under(asker_defaults, sizeof asker_defaults / sizeof asker_defaults[0], layers);
  TRY(kafka_conf_make(&all, &conf));
  return kafka_client_new(type, conf, out);
}

/* May a retry succeed? The broker may be away, or may not know a new topic yet. */
static bool is_retriable(rd_kafka_resp_err_t error)
{
  switch (error) {
  case RD_KAFKA_RESP_ERR__TRANSPORT:
  case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
  case RD_KAFKA_RESP_ERR__TIMED_OUT:
  case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
  case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
  case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
  case RD_KAFKA_RESP_ERR_NOT_CONTROLLER:
  case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
  case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
  case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    return true;
  default:
    return false;
  }
}

static err_t fail_kafka(rd_kafka_resp_err_t error, const char *what, const char *topic, const char *reason)
{
  FAIL(is_retriable(error) ? ERR_KAFKA_RETRY : ERR_KAFKA, "%s topic %s: %s", what, topic, reason);
}

static err_t fail_no_broker(rd_kafka_resp_err_t error)
{
  const char *trouble = kafka_trouble_newest();

  if (trouble)
    FAIL(ERR_KAFKA_RETRY, "%s", trouble);
  FAIL(ERR_KAFKA_RETRY, "no Kafka broker answers (%s): is it running, and is bootstrap.servers right?",
       rd_kafka_err2str(error));
}

/* Fail after a request for metadata of a topic. */
static err_t fail_ask(rd_kafka_resp_err_t error, const char *topic)
{
  switch (error) {
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    FAIL(ERR_KAFKA_RETRY, "topic %s does not exist: create it with `sluicectl topics create`", topic);
  case RD_KAFKA_RESP_ERR__TRANSPORT:
  case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
  case RD_KAFKA_RESP_ERR__TIMED_OUT:
    return fail_no_broker(error);
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    FAIL(ERR_KAFKA_DENIED, "this user may not use topic %s: an access list of the broker must allow it", topic);
  case RD_KAFKA_RESP_ERR_NO_ERROR:
    FAIL(ERR_KAFKA_RETRY, "topic %s has no partitions yet", topic);
  default:
    return fail_kafka(error, "Kafka gives no metadata of", topic, rd_kafka_err2str(error));
  }
}

struct cluster {
  bool has_topic;
  bool has_controller; /* one of its brokers accepts CreateTopics */
};

static bool lists_topic(const struct rd_kafka_metadata *metadata, const char *topic)
{
  for (int i = 0; i < metadata->topic_cnt; i++) {
    if (strcmp(metadata->topics[i].topic, topic) == 0)
      return true;
  }
  return false;
}

/* Ask for all topics and brokers. A broker that refuses us is noticed after a moment, not at the end of the timeout. */
static rd_kafka_resp_err_t ask_cluster(rd_kafka_t *rk, int timeout_ms, const struct rd_kafka_metadata **out)
{
  int moment_ms = timeout_ms < MOMENT_MS ? timeout_ms : MOMENT_MS;
  rd_kafka_resp_err_t error = rd_kafka_metadata(rk, 1, NULL, out, moment_ms);

  if (error == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_trouble_newest() || timeout_ms == moment_ms)
    return error;
  return rd_kafka_metadata(rk, 1, NULL, out, timeout_ms - moment_ms);
}

/* Find the topic and the controller. This creates no topic on any broker. */
static err_t look_at_cluster(rd_kafka_t *rk, const char *topic, int timeout_ms, struct cluster *out)
{
  const struct rd_kafka_metadata *metadata;
  rd_kafka_resp_err_t error = ask_cluster(rk, timeout_ms, &metadata);

  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail_ask(error, topic);
  out->has_topic = lists_topic(metadata, topic);
  out->has_controller = kafka_topic_has_controller(rk, metadata, timeout_ms);
  rd_kafka_metadata_destroy(metadata);
  return ERR_OK;
}

/* Ask until the topic has partitions. Right after the topic is created, this takes a moment. */
static err_t await_partitions(rd_kafka_t *rk, const char *topic, int64_t deadline_ns, int *out)
{
  int64_t young_until_ns = clock_now_ns() + YOUTH_MS * CLOCK_NS_PER_MS;
  rd_kafka_resp_err_t error;
  int n = 0;

  for (;;) {
    int left_ms = kafka_ms_until(deadline_ns);
    error = kafka_topic_n_partitions(rk, topic, left_ms < MOMENT_MS ? left_ms : MOMENT_MS, &n);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR && n > 0)
      break;
    bool is_missing = error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
    bool is_late = clock_now_ns() + RETRY_PAUSE_MS * CLOCK_NS_PER_MS >
                   (is_missing && young_until_ns < deadline_ns ? young_until_ns : deadline_ns);
    bool is_refused = error != RD_KAFKA_RESP_ERR_NO_ERROR && kafka_trouble_newest();
    if (is_late || is_refused || (error != RD_KAFKA_RESP_ERR_NO_ERROR && !is_retriable(error)))
      return fail_ask(error, topic);
    clock_sleep_ns(RETRY_PAUSE_MS * CLOCK_NS_PER_MS);
  }
  *out = n;
  return ERR_OK;
}

static err_t make_new_topic(const char *topic, int n_partitions, const struct kafka_properties *settings,
                            rd_kafka_NewTopic_t **out)
{
  char reason[REASON_BYTES];
  AUTO(destroy_new_topic)
  rd_kafka_NewTopic_t *made =
      rd_kafka_NewTopic_new(topic, n_partitions, -1 /* the broker's own replication factor */, reason, sizeof reason);

  if (!made)
    FAIL(ERR_KAFKA, "topic %s cannot be created: %s", topic, reason);
  for (size_t i = 0; settings && i < settings->n; i++) {
    if (rd_kafka_NewTopic_set_config(made, settings->items[i].name, settings->items[i].value))
      FAIL(ERR_KAFKA, "topic %s cannot be created with %s: %s", topic, settings->items[i].name, "unknown setting");
  }
  *out = made;
  made = NULL;
  return ERR_OK;
}

static err_t make_options(rd_kafka_t *rk, int timeout_ms, rd_kafka_AdminOptions_t **out)
{
  char reason[REASON_BYTES];
  AUTO(destroy_options)
  rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);

  if (!options)
    FAIL(ERR_MEMORY, "no memory for the options of a new topic");
  if (rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, reason, sizeof reason) ||
      rd_kafka_AdminOptions_set_operation_timeout(options, timeout_ms, reason, sizeof reason))
    FAIL(ERR_KAFKA, "%d ms is not a valid timeout: %s", timeout_ms, reason);
  *out = options;
  options = NULL;
  return ERR_OK;
}

static err_t read_result(rd_kafka_event_t *event, const char *topic, bool *is_created)
{
  const char *what = "Kafka does not create";
  size_t n = 0;

  if (rd_kafka_event_error(event))
    return fail_kafka(rd_kafka_event_error(event), what, topic, rd_kafka_event_error_string(event));
  const rd_kafka_topic_result_t **results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
  if (n != 1)
    FAIL(ERR_KAFKA, "%s topic %s: it answered for %zu topics", what, topic, n);
  rd_kafka_resp_err_t error = rd_kafka_topic_result_error(results[0]);
  const char *reason = rd_kafka_topic_result_error_string(results[0]);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    return fail_kafka(error, what, topic, reason ? reason : rd_kafka_err2str(error));
  *is_created = error == RD_KAFKA_RESP_ERR_NO_ERROR;
  return ERR_OK;
}

static err_t ask_to_create(rd_kafka_t *rk, const char *topic, int n_partitions, const struct kafka_properties *settings,
                           int timeout_ms, bool *is_created)
{
  AUTO(destroy_new_topic) rd_kafka_NewTopic_t *made = NULL;
  AUTO(destroy_options) rd_kafka_AdminOptions_t *options = NULL;
  AUTO(destroy_queue) rd_kafka_queue_t *queue = NULL;
  AUTO(destroy_event) rd_kafka_event_t *event = NULL;

  TRY(make_new_topic(topic, n_partitions, settings, &made));
  TRY(make_options(rk, timeout_ms, &options));
  queue = rd_kafka_queue_new(rk);
  rd_kafka_CreateTopics(rk, &made, 1, options, queue);
  event = rd_kafka_queue_poll(queue, timeout_ms + 1000); /* longer than the timeout of the request */
  if (!event)
    FAIL(ERR_KAFKA_RETRY, "Kafka did not create topic %s within %d ms", topic, timeout_ms);
  return read_result(event, topic, is_created);
}

err_t topics_create(const struct kafka_layers *layers, const char *topic, int n_partitions,
                    const struct kafka_properties *settings, int timeout_ms, bool *is_created)
{
  int64_t deadline_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;
  AUTO(destroy_client) rd_kafka_t *rk = NULL;
  struct cluster cluster = { 0 };
  int n;

  TRY(open_client(layers, RD_KAFKA_PRODUCER, &rk));
  TRY(look_at_cluster(rk, topic, timeout_ms, &cluster));
  if (cluster.has_topic) {
    *is_created = false;
    return ERR_OK;
  }
  /* The embedded broker names a controller that does not exist. It creates a topic when a producer asks for it. */
  if (cluster.has_controller)
    return ask_to_create(rk, topic, n_partitions, settings, kafka_ms_until(deadline_ns), is_created);
  TRY(await_partitions(rk, topic, deadline_ns, &n));
  *is_created = true;
  return ERR_OK;
}

err_t topics_count_partitions(const struct kafka_layers *layers, const char *topic, int timeout_ms, int *out)
{
  int64_t deadline_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;
  AUTO(destroy_client) rd_kafka_t *rk = NULL;

  TRY(open_client(layers, RD_KAFKA_CONSUMER, &rk));
  return await_partitions(rk, topic, deadline_ns, out);
}
