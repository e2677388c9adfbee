/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the query consumer, and what others ask of it. */
#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_group.h"
#include "ingest/kafka/kafka_renewal.h"
#include "ingest/readers/query_reader_state.h"
#include "ingest/readers/query_start.h"

static const struct kafka_property defaults[] = {
  { "enable.auto.commit", "false" },
  { "enable.auto.offset.store", "false" },
  { "auto.offset.reset", "earliest" }, /* a new group starts at the oldest query and skips none */
  { "session.timeout.ms", "6000" },    /* after this time another member gets the partitions of a killed one */
  { "heartbeat.interval.ms", "100" },  /* a rebalance takes as long as its slowest member to notice it */
  { "topic.metadata.refresh.interval.ms", "30000" },
  { "socket.nagle.disable", "true" },
  { "fetch.wait.max.ms", "100" },
  { "fetch.error.backoff.ms", "50" },
};

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *offsets, void *opaque)
{
  struct query_reader *r = opaque;

  (void)rk;
  (void)offsets;
  r->commits.is_under_way = false;
  if (!r->is_standby)
    query_commits_end(&r->commits, error);
}

err_t query_reader_open(const struct kafka_layers *layers, const char *topic, const char *group, const char *former,
                        struct offset_tracker *tracker, struct query_reader **out)
{
  AUTO(query_reader_close) struct query_reader *r = NULL;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  struct kafka_property group_id = { "group.id", group };
  rd_kafka_conf_t *conf;

  kafka_layers_add(&all, &group_id, 1);
  TRY(mem_array(1, sizeof *r, &r));
  TRY(mem_copy_str(topic, &r->topic));
  TRY(mem_copy_str(group, &r->group));
  r->tracker = offset_tracker_share(tracker);
  r->version = kafka_renewal_version();
  TRY(kafka_conf_make(&all, &conf));
  r->starts_at_end = query_start_is_end(conf);
  rd_kafka_conf_set_opaque(conf, r);
  rd_kafka_conf_set_rebalance_cb(conf, query_assignment_on_rebalance);
  rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
  TRY(kafka_client_new(RD_KAFKA_CONSUMER, conf, &r->rk));
  r->commits = (struct query_commits){ .rk = r->rk, .topic = r->topic, .tracker = r->tracker };
  kafka_stats_watch(r->rk, all.client);
  rd_kafka_poll_set_consumer(r->rk);
  TRY(query_queues_open(r->rk, &r->queues));
  former_member_begin(&r->former, former, r->rk);
  if (!*r->former.id)
    TRY(kafka_group_subscribe(r->rk, r->topic));
  *out = r;
  r = NULL;
  return ERR_OK;
}

void query_reader_release_message(struct query_reader *r)
{
  if (r->message)
    rd_kafka_message_destroy(r->message);
  r->message = NULL;
}

/* Give the group the partitions that it waits for. Unsubscribed first: otherwise the reader would join again. */
static void give_up_awaited(struct query_reader *r)
{
  rd_kafka_unsubscribe(r->rk);
  rd_kafka_assign(r->rk, NULL);
}

/* Leave the group and destroy the client. After a fatal error rd_kafka_consumer_close() never returns, so it is not
 * called; the group notices by itself that this member is gone. */
static void close_client(struct query_reader *r)
{
  char reason[8];
  bool is_lost = rd_kafka_fatal_error(r->rk, reason, sizeof reason) != RD_KAFKA_RESP_ERR_NO_ERROR;

  r->is_closing = true;
  if (!is_lost) {
    query_assignment_commit(r);
    if (r->is_awaited)
      give_up_awaited(r);
    rd_kafka_consumer_close(r->rk);
  }
  query_queues_close(&r->queues);
  kafka_client_destroy(r->rk, is_lost ? RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE : 0);
}

static void close_reader(void *object)
{
  struct query_reader *r = object;

  query_reader_release_message(r);
  if (r->rk)
    close_client(r);
  offset_tracker_close(&r->tracker);
  mem_free(&r->topic);
  mem_free(&r->group);
  mem_free(&r);
}

void query_reader_close(struct query_reader **r)
{
  if (*r) {
    (*r)->keeps_partitions = false;
    kafka_closing_run("queries", close_reader, *r);
  }
  *r = NULL;
}

bool query_reader_is_outdated(const struct query_reader *r)
{
  return r->version != kafka_renewal_version();
}

void query_reader_stand_by(struct query_reader *r, bool is_standby)
{
  r->is_standby = is_standby;
}

void query_reader_keep_partitions(struct query_reader *r)
{
  r->keeps_partitions = true;
}

bool query_reader_is_awaited(const struct query_reader *r)
{
  return r->is_awaited;
}

bool query_reader_is_member(const struct query_reader *r)
{
  return kafka_group_has_member(r->rk);
}

const char *query_reader_member(const struct query_reader *r)
{
  return r->member;
}

bool query_reader_is_assigned(struct query_reader *r)
{
  return atomic_load(&r->is_assigned) && !atomic_load(&r->is_topic_away);
}

bool query_reader_is_topic_away(struct query_reader *r)
{
  return atomic_load(&r->is_topic_away);
}

const char *query_reader_denied(struct query_reader *r)
{
  return atomic_load(&r->denied);
}

uint64_t query_reader_generation(const struct query_reader *r)
{
  return r->generation;
}

void query_reader_abandon(struct query_reader **r)
{
  if (*r) {
    (*r)->keeps_partitions = false;
    (*r)->is_standby = true;
    kafka_closing_begin("queries", close_reader, *r);
  }
  *r = NULL;
}

void query_reader_retire(struct query_reader **r)
{
  char reason[8];

  if (!*r)
    return;
  bool is_lost = rd_kafka_fatal_error((*r)->rk, reason, sizeof reason) != RD_KAFKA_RESP_ERR_NO_ERROR;
  if (!is_lost && !rd_kafka_assignment_lost((*r)->rk)) {
    query_commits_repeat(&(*r)->commits);
    query_assignment_commit(*r);
  }
  offset_tracker_forget((*r)->tracker);
  query_reader_abandon(r);
}
