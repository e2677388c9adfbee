/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of a whole topic, on top of a librdkafka consumer with manual assignment. */
#include "ingest/readers/topic_reader.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_group.h"
#include "ingest/kafka/kafka_renewal.h"
#include "ingest/kafka/kafka_threads.h"
#include "ingest/kafka/kafka_topic.h"
#include "ingest/kafka/kafka_trouble.h"
#include "ingest/kafka/topic_policy_ask.h"

enum { DRAIN_CHUNK = 512, STEP_MS = 200 };

/* How long a client that was just opened may take to connect, even if another one is refused. */
enum { CONNECT_MS = 1000 };

struct topic_reader {
  rd_kafka_t *rk;
  rd_kafka_queue_t *queue;
  struct kafka_threads threads;
  char *topic;
  rd_kafka_message_t **messages; /* messages of the records that the caller has */
  size_t n_messages;
  size_t messages_capacity;
  uint64_t version;   /* kafka_renewal_version() when it was opened */
  bool is_away;       /* the client has reported an absence since the last poll */
  bool is_committing; /* the broker has not answered the last commit */
  bool is_refused;    /* the broker has refused a commit, and nobody has been told */
};

static const struct kafka_property defaults[] = {
  { "group.id", "sluice-catalogue" }, /* librdkafka needs one; what commits positions sets its own */
  { "enable.auto.commit", "false" },
  { "enable.auto.offset.store", "false" },
  { "auto.offset.reset", "error" },
  { "isolation.level", "read_committed" },
  { "enable.partition.eof", "true" },
  { "check.crcs", "true" }, /* a damaged batch is an event instead of wrong records */
  { "socket.nagle.disable", "true" },
  { "fetch.wait.max.ms", "100" },
  { "fetch.error.backoff.ms", "50" },
  { "fetch.message.max.bytes", "8388608" },
  /* Once this many wait, librdkafka fetches nothing for a second. So it must be more than are applied in a second. */
  { "queued.min.messages", "500000" },
  { "queued.max.messages.kbytes", "262144" },
};

/* Does the error mean that the topic or all brokers are gone? When they are back, it may be another log. */
static bool is_sign_of_absence(rd_kafka_resp_err_t error)
{
  switch (error) {
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
  case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    return true;
  default:
    return false;
  }
}

/* Note errors that the client reports by itself instead of in a message, above all that the topic or all brokers are
 * gone. */
static void on_error(rd_kafka_t *rk, int error, const char *reason, void *opaque)
{
  struct topic_reader *r = opaque;

  kafka_log_error(rk, error, reason);
  r->is_away |= is_sign_of_absence((rd_kafka_resp_err_t)error);
}

/* A failed commit misleads Kafka's tools, and harms nothing else. */
static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *offsets, void *opaque)
{
  struct topic_reader *r = opaque;

  (void)rk;
  (void)offsets;
  r->is_committing = false;
  if (!error || error == RD_KAFKA_RESP_ERR__DESTROY)
    return;
  r->is_refused = true;
  log_warn("positions_not_committed",
           "topic=%s error=%s note=\"Kafka's tools show an old lag; nothing else depends on it\"", r->topic,
           rd_kafka_err2name(error));
}

bool topic_reader_take_refusal(struct topic_reader *r)
{
  bool is_refused = r->is_refused;

  r->is_refused = false;
  return is_refused;
}

bool topic_reader_commit(struct topic_reader *r, const struct position *positions, size_t n)
{
  if (r->is_committing)
    return false;
  if (n == 0)
    return true;
  rd_kafka_topic_partition_list_t *list = kafka_group_offsets(r->topic, positions, n);
  r->is_committing = rd_kafka_commit(r->rk, list, true) == RD_KAFKA_RESP_ERR_NO_ERROR;
  rd_kafka_topic_partition_list_destroy(list);
  return r->is_committing;
}

static int open_socket(int domain, int type, int protocol, void *reader)
{
  struct topic_reader *r = reader;

  return kafka_threads_open_socket(&r->threads, domain, type, protocol);
}

static int close_socket(int socket, void *reader)
{
  struct topic_reader *r = reader;

  return kafka_threads_close_socket(&r->threads, socket);
}

err_t topic_reader_open(const struct kafka_layers *layers, const char *topic, struct topic_reader **out)
{
  AUTO(topic_reader_close) struct topic_reader *r = NULL;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  rd_kafka_conf_t *conf;

  TRY(mem_array(1, sizeof *r, &r));
  kafka_threads_init(&r->threads);
  TRY(mem_copy_str(topic, &r->topic));
  r->version = kafka_renewal_version();
  TRY(kafka_conf_make(&all, &conf));
  rd_kafka_conf_set_socket_cb(conf, open_socket);
  rd_kafka_conf_set_closesocket_cb(conf, close_socket);
  rd_kafka_conf_set_opaque(conf, r);
  rd_kafka_conf_set_error_cb(conf, on_error);
  rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
  TRY(kafka_client_new(RD_KAFKA_CONSUMER, conf, &r->rk));
  kafka_stats_watch(r->rk, all.client);
  rd_kafka_poll_set_consumer(r->rk);
  r->queue = rd_kafka_queue_get_consumer(r->rk);
  *out = r;
  r = NULL;
  return ERR_OK;
}

err_t topic_reader_open_again(const struct kafka_layers *layers, const char *topic, struct topic_reader **out)
{
  err_code_t err = topic_reader_open(layers, topic, out);

  if (err == ERR_CONFIG)
    FAIL(ERR_KAFKA_RETRY, "%s", err_message());
  return err;
}

void topic_reader_stand_back(struct topic_reader *r, bool stands_back)
{
  kafka_threads_stand_back(&r->threads, stands_back);
}

static void close_reader(void *object)
{
  struct topic_reader *r = object;

  topic_reader_stand_back(r, false);
  topic_reader_release_all(r);
  if (r->queue)
    rd_kafka_queue_destroy(r->queue);
  if (r->rk) {
    rd_kafka_consumer_close(r->rk);
    kafka_client_destroy(r->rk, 0);
  }
  kafka_threads_fini(&r->threads);
  mem_free(&r->messages);
  mem_free(&r->topic);
  mem_free(&r);
}

void topic_reader_close(struct topic_reader **r)
{
  if (*r)
    kafka_closing_run("topic_reader", close_reader, *r);
  *r = NULL;
}

void topic_reader_abandon(struct topic_reader **r)
{
  if (*r)
    kafka_closing_begin("topic_reader", close_reader, *r);
  *r = NULL;
}

bool topic_reader_is_outdated(const struct topic_reader *r)
{
  return r->version != kafka_renewal_version();
}

/* Serve error callbacks while nothing is assigned: then there are no records to lose. */
static void serve_errors(struct topic_reader *r)
{
  rd_kafka_message_t *m = rd_kafka_consumer_poll(r->rk, 0);

  if (m)
    rd_kafka_message_destroy(m);
}

/* Wait for the cluster's id in steps. Waiting in one step would hide for long why no broker can be used.
 *
 * Returns NULL without a broker, and from one that has no id. */
static char *await_cluster_id(struct topic_reader *r, int64_t deadline_ns)
{
  int64_t patient_until_ns = clock_now_ns() + CONNECT_MS * CLOCK_NS_PER_MS;
  char *id;

  do {
    int left_ms = kafka_ms_until(deadline_ns);
    id = rd_kafka_clusterid(r->rk, left_ms < STEP_MS ? left_ms : STEP_MS);
    serve_errors(r);
  } while (!id && !topic_reader_is_outdated(r) && clock_now_ns() < deadline_ns &&
           (clock_now_ns() < patient_until_ns || !kafka_trouble_newest()));
  return id;
}

static err_t fail_no_broker(const struct topic_reader *r, int timeout_ms)
{
  const char *trouble = kafka_trouble_newest();

  if (topic_reader_is_outdated(r))
    FAIL(ERR_KAFKA_RETRY, "the certificates have changed: another client takes over");
  if (trouble)
    FAIL(ERR_KAFKA_RETRY, "%s", trouble);
  FAIL(ERR_KAFKA_RETRY, "no Kafka broker answered within %d ms: is bootstrap.servers right?", timeout_ms);
}

err_t topic_reader_cluster_id(struct topic_reader *r, int timeout_ms, char **out)
{
  err_code_t err = ERR_OK;

  topic_reader_stand_back(r, false);
  char *id = await_cluster_id(r, clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS);
  if (!id && rd_kafka_controllerid(r->rk, STEP_MS) < 0)
    return fail_no_broker(r, timeout_ms);
  err = mem_copy_str(id ? id : "", out);
  if (id)
    rd_kafka_mem_free(r->rk, id);
  return err;
}

struct topic_policy topic_reader_policy(struct topic_reader *r, int timeout_ms)
{
  topic_reader_stand_back(r, false);
  return topic_policy_ask(r->rk, r->topic, timeout_ms);
}

int64_t topic_reader_log_end(struct topic_reader *r, int32_t partition)
{
  int64_t first, end;

  if (rd_kafka_get_watermark_offsets(r->rk, r->topic, partition, &first, &end) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return -1;
  return end;
}

static err_t fail_partitions(const struct topic_reader *r, rd_kafka_resp_err_t error)
{
  const char *reason = error ? rd_kafka_err2str(error) : "it has none";

  switch (error) {
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    FAIL(ERR_KAFKA_DENIED, "this user may not describe topic %s: allow it to read the topic", r->topic);
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    FAIL(ERR_KAFKA_TOPIC, "topic %s does not exist: create it with `sluicectl topics create`", r->topic);
  default:
    FAIL(ERR_KAFKA_RETRY, "the partitions of topic %s are unknown: %s", r->topic, reason);
  }
}

err_t topic_reader_n_partitions(struct topic_reader *r, int timeout_ms, int *out)
{
  int n = 0;

  topic_reader_stand_back(r, false);
  rd_kafka_resp_err_t error = kafka_topic_n_partitions(r->rk, r->topic, timeout_ms, &n);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR || n == 0)
    return fail_partitions(r, error);
  *out = n;
  return ERR_OK;
}

err_t topic_reader_bounds(struct topic_reader *r, int32_t partition, int timeout_ms, int64_t *first, int64_t *end)
{
  topic_reader_stand_back(r, false);
  rd_kafka_resp_err_t error = kafka_topic_bounds(r->rk, r->topic, partition, timeout_ms, first, end);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    FAIL(ERR_KAFKA_RETRY, "the bounds of topic %s, partition %d, are unknown: %s", r->topic, partition,
         rd_kafka_err2str(error));
  return ERR_OK;
}

err_t topic_reader_assign(struct topic_reader *r, int32_t partition, int64_t offset)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

  rd_kafka_topic_partition_list_add(list, r->topic, partition)->offset = offset;
  rd_kafka_error_t *error = rd_kafka_incremental_assign(r->rk, list);
  rd_kafka_topic_partition_list_destroy(list);
  if (!error)
    return ERR_OK;
  err_code_t err = err_set(ERR_KAFKA, __FILE__, __LINE__, "topic %s, partition %d, cannot be assigned: %s", r->topic,
                           partition, rd_kafka_error_string(error));
  rd_kafka_error_destroy(error);
  return err;
}

void topic_reader_leave(struct topic_reader *r, int32_t partition)
{
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

  rd_kafka_topic_partition_list_add(list, r->topic, partition);
  rd_kafka_error_t *error = rd_kafka_incremental_unassign(r->rk, list);
  if (error) /* it was not assigned: nothing to stop */
    rd_kafka_error_destroy(error);
  rd_kafka_topic_partition_list_destroy(list);
}

void topic_reader_unassign(struct topic_reader *r)
{
  rd_kafka_assign(r->rk, NULL);
}

struct poll {
  struct topic_reader *reader;
  struct topic_record *records;
  size_t n;
  struct topic_events *events;
};

static void take_event(struct poll *p, const rd_kafka_message_t *m)
{
  switch (m->err) {
  case RD_KAFKA_RESP_ERR__PARTITION_EOF:
    p->records[p->n++] = (struct topic_record){ .is_end = true, .partition = m->partition, .offset = m->offset };
    break;
  case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
  case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    p->events->is_out_of_range = true;
    p->events->out_of_range_partition = m->partition;
    break;
  case RD_KAFKA_RESP_ERR__BAD_MSG:
  case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
  case RD_KAFKA_RESP_ERR_INVALID_MSG:
  case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED: /* a batch of an unknown version */
    if (!p->events->is_damaged) {
      p->events->is_damaged = true;
      p->events->damaged_partition = m->partition;
      p->events->damaged_offset = m->offset;
    }
    break;
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    p->events->is_denied = true;
    break;
  default: /* librdkafka recovers by itself, unless the topic is gone */
    p->events->is_away |= is_sign_of_absence(m->err);
    log_warn("topic_consumer", "topic=%s partition=%d error=%s reason=%s", p->reader->topic, m->partition,
             rd_kafka_err2name(m->err), log_quote(span_of_str(rd_kafka_message_errstr(m))));
  }
}

/* Take a message: a record is kept until the release, an event is noted. librdkafka continues after a damaged batch.
 * The records after it are dropped, because those of the batch are missing. */
static void take(struct poll *p, rd_kafka_message_t *m)
{
  struct topic_reader *r = p->reader;

  bool is_behind_damage = p->events->is_damaged && m->partition == p->events->damaged_partition;
  if (m->err || is_behind_damage) {
    if (!is_behind_damage)
      take_event(p, m);
    rd_kafka_message_destroy(m);
    return;
  }
  p->records[p->n++] = kafka_record(m);
  r->messages[r->n_messages++] = m;
}

void topic_reader_poll(struct topic_reader *r, size_t max, int timeout_ms, struct topic_record *records, size_t *n,
                       struct topic_events *events)
{
  struct poll p = { r, records, 0, events };
  rd_kafka_message_t *chunk[DRAIN_CHUNK];

  *n = 0;
  *events = (struct topic_events){ 0 };
  if (mem_grow(r->n_messages + max, sizeof *r->messages, &r->messages_capacity, &r->messages) != ERR_OK)
    return; /* no record was taken, so none is lost; the next poll tries again */
  rd_kafka_message_t *first = rd_kafka_consumer_poll(r->rk, timeout_ms);
  if (first)
    take(&p, first);
  /* With a timeout the batch call would wait until its array is full. With 0 it returns the records that are there. */
  while (first && p.n < max && !events->is_out_of_range && !events->is_damaged && !events->is_away) {
    size_t room = max - p.n < DRAIN_CHUNK ? max - p.n : DRAIN_CHUNK;
    ssize_t n_chunk = rd_kafka_consume_batch_queue(r->queue, 0, chunk, room);
    for (ssize_t i = 0; i < n_chunk; i++)
      take(&p, chunk[i]);
    if (n_chunk <= 0)
      break;
  }
  events->is_away |= r->is_away;
  r->is_away = false;
  *n = p.n;
}

size_t topic_reader_n_held(const struct topic_reader *r)
{
  return r->n_messages;
}

void topic_reader_release(struct topic_reader *r, size_t n)
{
  for (size_t i = 0; i < n; i++)
    rd_kafka_message_destroy(r->messages[i]);
  r->n_messages -= n;
  if (r->n_messages)
    memmove(r->messages, r->messages + n, r->n_messages * sizeof *r->messages);
}

void topic_reader_release_all(struct topic_reader *r)
{
  topic_reader_release(r, r->n_messages);
}
