#include "ingest/query_reader.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka_client.h"
#include "ingest/kafka_closing.h"
#include "ingest/offset_tracker.h"

enum { COMMIT_INTERVAL_MS = 200, COMMIT_PARTITIONS = 1024 };

struct query_reader {
  rd_kafka_t *rk;
  char *topic;
  struct offset_tracker *tracker;
  rd_kafka_message_t *message; /* of the last poll */
  int64_t commit_due_ns;
  _Atomic bool is_assigned;
};

static const struct kafka_property defaults[] = {
  { "enable.auto.commit", "false" },   { "enable.auto.offset.store", "false" },
  { "auto.offset.reset", "earliest" }, /* a new group answers what is there: nothing is skipped */
  { "session.timeout.ms", "6000" },    /* a killed member's partitions move on after so long */
  { "heartbeat.interval.ms", "1000" }, { "topic.metadata.refresh.interval.ms", "30000" },
  { "socket.nagle.disable", "true" },  { "fetch.wait.max.ms", "100" },
  { "fetch.error.backoff.ms", "50" },
};

/* Without a commit these queries would be answered again after a restart: it is tried again. */
static void note_failed_commit(struct query_reader *r, rd_kafka_resp_err_t error)
{
  log_warn("query_commit", "error=%s", rd_kafka_err2name(error));
  offset_tracker_tell_again(r->tracker);
}

/* Commit what was answered since the last time. */
static void commit(struct query_reader *r, bool is_async)
{
  struct position positions[COMMIT_PARTITIONS];
  size_t n = offset_tracker_committable(r->tracker, positions, COMMIT_PARTITIONS);
  rd_kafka_topic_partition_list_t *list;

  if (n == 0)
    return;
  list = rd_kafka_topic_partition_list_new((int)n);
  for (size_t i = 0; i < n; i++)
    rd_kafka_topic_partition_list_add(list, r->topic, positions[i].partition)->offset = positions[i].next;
  rd_kafka_resp_err_t error = rd_kafka_commit(r->rk, list, is_async);
  rd_kafka_topic_partition_list_destroy(list);
  if (error)
    note_failed_commit(r, error);
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t event, rd_kafka_topic_partition_list_t *partitions,
                         void *opaque)
{
  struct query_reader *r = opaque;

  if (event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    rd_kafka_assign(rk, partitions);
    atomic_store(&r->is_assigned, true);
  } else {
    commit(r, false);
    offset_tracker_forget(r->tracker);
    rd_kafka_assign(rk, NULL);
  }
  log_info("query_partitions", "topic=%s %s=%d", r->topic,
           event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? "assigned" : "revoked", partitions->cnt);
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *offsets, void *opaque)
{
  (void)rk;
  (void)offsets;
  if (error && error != RD_KAFKA_RESP_ERR__NO_OFFSET)
    note_failed_commit(opaque, error);
}

static err_t subscribe(struct query_reader *r)
{
  rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);

  rd_kafka_topic_partition_list_add(topics, r->topic, RD_KAFKA_PARTITION_UA);
  rd_kafka_resp_err_t error = rd_kafka_subscribe(r->rk, topics);
  rd_kafka_topic_partition_list_destroy(topics);
  if (error)
    FAIL(ERR_KAFKA, "topic %s cannot be subscribed to: %s", r->topic, rd_kafka_err2str(error));
  return ERR_OK;
}

err_t query_reader_open(const struct kafka_layers *layers, const char *topic, const char *group,
                        struct query_reader **out)
{
  AUTO(query_reader_close) struct query_reader *r = NULL;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  struct kafka_property group_id = { "group.id", group };
  rd_kafka_conf_t *conf;

  all.layer[all.n++] = (struct kafka_properties){ &group_id, 1 };
  TRY(mem_array(1, sizeof *r, &r));
  TRY(mem_copy_str(topic, &r->topic));
  TRY(offset_tracker_open(&r->tracker));
  TRY(kafka_conf_make(&all, &conf));
  rd_kafka_conf_set_opaque(conf, r);
  rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
  rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
  TRY(kafka_client_new(RD_KAFKA_CONSUMER, conf, &r->rk));
  rd_kafka_poll_set_consumer(r->rk);
  TRY(subscribe(r));
  *out = r;
  r = NULL;
  return ERR_OK;
}

static void release_message(struct query_reader *r)
{
  if (r->message)
    rd_kafka_message_destroy(r->message);
  r->message = NULL;
}

/* After a fatal error librdkafka's close never returns: then the group finds out by itself that this member is gone. */
static void close_client(struct query_reader *r)
{
  char reason[8];
  bool is_lost = rd_kafka_fatal_error(r->rk, reason, sizeof reason) != RD_KAFKA_RESP_ERR_NO_ERROR;

  if (!is_lost) {
    commit(r, false);
    rd_kafka_consumer_close(r->rk);
  }
  rd_kafka_destroy_flags(r->rk, is_lost ? RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE : 0);
}

static void close_reader(void *object)
{
  struct query_reader *r = object;

  release_message(r);
  if (r->rk)
    close_client(r);
  offset_tracker_close(&r->tracker);
  mem_free(&r->topic);
  mem_free(&r);
}

void query_reader_close(struct query_reader **r)
{
  if (*r)
    kafka_closing_run("queries", close_reader, *r);
  *r = NULL;
}

static void commit_now_and_then(struct query_reader *r)
{
  int64_t now = clock_now_ns();

  if (now >= r->commit_due_ns) {
    r->commit_due_ns = now + COMMIT_INTERVAL_MS * CLOCK_NS_PER_MS;
    commit(r, true);
  }
}

err_t query_reader_poll(struct query_reader *r, int timeout_ms, bool *has_record, struct query_record *out)
{
  uint32_t ticket;

  release_message(r);
  *has_record = false;
  commit_now_and_then(r);
  rd_kafka_message_t *m = r->message = rd_kafka_consumer_poll(r->rk, timeout_ms);
  if (!m)
    return ERR_OK;
  if (m->err == RD_KAFKA_RESP_ERR__FATAL)
    FAIL(ERR_KAFKA, "queries cannot be read: %s", rd_kafka_message_errstr(m));
  if (m->err) {
    log_warn("query_consumer", "error=%s reason=%s", rd_kafka_err2name(m->err),
             log_quote(span_of_str(rd_kafka_message_errstr(m))));
    return ERR_OK;
  }
  TRY(offset_tracker_begin(r->tracker, m->partition, m->offset, &ticket));
  *out = (struct query_record){
    .has_key = m->key != NULL,
    .key = span_of(m->key, m->key_len),
    .has_value = m->payload != NULL,
    .value = span_of(m->payload, m->len),
    .content_type = kafka_header(m, "content-type"),
    .partition = m->partition,
    .offset = m->offset,
    .ticket = ticket,
  };
  *has_record = true;
  return ERR_OK;
}

void query_reader_done(struct query_reader *r, uint32_t ticket)
{
  offset_tracker_done(r->tracker, ticket);
}

size_t query_reader_n_open(struct query_reader *r)
{
  return offset_tracker_n_open(r->tracker);
}

bool query_reader_is_assigned(struct query_reader *r)
{
  return atomic_load(&r->is_assigned);
}
