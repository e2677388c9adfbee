/* SPDX-License-Identifier: Apache-2.0 */
/* The query consumer: group events, commits, a topic that disappears and returns, and polling. */
#include "ingest/query_reader.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/former_member.h"
#include "ingest/kafka_client.h"
#include "ingest/kafka_closing.h"
#include "ingest/kafka_renewal.h"
#include "ingest/query_commits.h"
#include "ingest/query_queues.h"

/* Maximum wait for the group's events while records arrive, and maximum number of events handled at once. */
enum { EVENTS_INTERVAL_MS = 10, EVENTS_AT_ONCE = 64 };

/* How long the queries that were taken may take to be answered before the partitions are given up, and how often to
 * look. */
enum { DRAIN_MS = 1000, DRAIN_STEP_MS = 1 };

/* How often to wake librdkafka. Its main thread sleeps for up to half a second, and a heartbeat that is due waits. */
enum { WAKE_INTERVAL_MS = 100 };

/* Interval and timeout of looking for a missing topic. */
enum { AWAY_INTERVAL_MS = 1000, AWAY_TIMEOUT_MS = 500 };

struct query_reader {
  rd_kafka_t *rk;
  char *topic;
  char *group;
  struct offset_tracker *tracker;
  struct query_queues queues;
  struct query_commits commits;
  rd_kafka_message_t *message; /* that of the last poll */
  int64_t events_due_ns;
  int64_t away_due_ns;
  uint64_t generation;
  _Atomic bool is_assigned;
  _Atomic bool is_topic_away;   /* true until the topic is back and assigned again */
  _Atomic(const char *) denied; /* see query_reader_denied() */
  uint64_t version;             /* kafka_renewal_version() when it was opened */
  bool keeps_partitions;        /* see query_reader_keep_partitions() */
  bool is_awaited;              /* see query_reader_is_awaited() */
  int n_awaited;                /* the partitions that the group waits for */
  int64_t give_up_ns;           /* when they are given up at the latest; 0: they are kept */
  bool is_closing;
  int64_t wake_due_ns;
  char member[QUERY_MEMBER_MAX + 1];
  struct former_member former;
  bool is_standby;   /* another reader uses the tracker: the former one, or the next one */
  bool is_rejoining; /* the topic is back, but not assigned yet */
};

static const char group_denied[] = "not allowed to use query.group";
static const char topic_denied[] = "not allowed to read the query topic";
static const char group_differs[] = "another program in query.group shares partitions in another way: stop it";

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

/* May offsets be committed? While the topic is away they may not: they mean nothing in a new topic. */
static bool may_commit(const struct query_reader *r)
{
  return !r->is_standby && !atomic_load(&r->is_topic_away);
}

static void commit_and_wait(struct query_reader *r)
{
  if (may_commit(r))
    query_commits_wait(&r->commits);
}

/* Forward the partitions' records to a queue of ours. librdkafka keeps the forwarding when it starts to fetch and
 * removes it when it stops. So it is set at each assignment, before the fetch begins. Records of an earlier assignment
 * that are still in the queue have an older version; librdkafka drops them when they are popped. */
static void forward_records(struct query_reader *r, const rd_kafka_topic_partition_list_t *partitions)
{
  for (int i = 0; i < partitions->cnt; i++) {
    rd_kafka_queue_t *queue =
        rd_kafka_queue_get_partition(r->rk, partitions->elems[i].topic, partitions->elems[i].partition);
    rd_kafka_queue_forward(queue, r->queues.records);
    rd_kafka_queue_destroy(queue);
  }
}

/* Any assignment, even an empty one, shows that the group may be used; only partitions show that the topic may be read.
 */
static void note_allowed(struct query_reader *r, bool has_partitions)
{
  if (has_partitions || atomic_load(&r->denied) != topic_denied)
    atomic_store(&r->denied, NULL);
}

/* Forget the assignment: other members read its queries, or this one does so again. */
static void forget(struct query_reader *r)
{
  if (!r->is_standby)
    offset_tracker_forget(r->tracker);
}

static void take_assignment(struct query_reader *r, rd_kafka_topic_partition_list_t *partitions)
{
  bool is_away = atomic_load(&r->is_topic_away);

  note_allowed(r, partitions->cnt > 0);
  forward_records(r, partitions);
  rd_kafka_assign(r->rk, partitions);
  if (!is_away) {
    r->generation += partitions->cnt > 0;
  } else if (r->is_rejoining || partitions->cnt > 0) {
    forget(r);
    r->is_rejoining = false;
    atomic_store(&r->is_topic_away, false);
  }
}

/* A commit under way may fail, and nobody would repeat it: so all positions are committed again. The queries that were
 * not answered are another member's from now on; but nobody reads again those of a topic that is away. */
static void give_up_assignment(struct query_reader *r)
{
  if (!rd_kafka_assignment_lost(r->rk)) { /* lost partitions belong to another member already */
    query_commits_repeat(&r->commits);
    commit_and_wait(r);
  }
  forget(r);
  rd_kafka_assign(r->rk, NULL);
  r->generation += !atomic_load(&r->is_topic_away);
}

static void note_assigned(struct query_reader *r, bool is_assigned, int n_partitions)
{
  atomic_store(&r->is_assigned, is_assigned);
  log_info("query_partitions", "topic=%s %s=%d", r->topic, is_assigned ? "assigned" : "revoked", n_partitions);
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t event, rd_kafka_topic_partition_list_t *partitions,
                         void *opaque)
{
  struct query_reader *r = opaque;
  bool is_assigned = event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;

  if (!is_assigned && !r->is_closing && !rd_kafka_assignment_lost(rk)) {
    r->is_awaited = true;
    r->n_awaited = partitions->cnt;
    if (!r->keeps_partitions)
      query_reader_give_up(r);
    return;
  }
  if (is_assigned)
    take_assignment(r, partitions);
  else
    give_up_assignment(r);
  note_assigned(r, is_assigned, partitions->cnt);
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *offsets, void *opaque)
{
  struct query_reader *r = opaque;

  (void)rk;
  (void)offsets;
  r->commits.is_under_way = false;
  if (!r->is_standby)
    query_commits_end(&r->commits, error);
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

err_t query_reader_open(const struct kafka_layers *layers, const char *topic, const char *group, const char *former,
                        struct offset_tracker *tracker, struct query_reader **out)
{
  AUTO(query_reader_close) struct query_reader *r = NULL;
  struct kafka_layers all = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], layers);
  struct kafka_property group_id = { "group.id", group };
  rd_kafka_conf_t *conf;

  all.layer[all.n++] = (struct kafka_properties){ &group_id, 1 };
  TRY(mem_array(1, sizeof *r, &r));
  TRY(mem_copy_str(topic, &r->topic));
  TRY(mem_copy_str(group, &r->group));
  r->tracker = offset_tracker_share(tracker);
  r->version = kafka_renewal_version();
  TRY(kafka_conf_make(&all, &conf));
  rd_kafka_conf_set_opaque(conf, r);
  rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
  rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
  TRY(kafka_client_new(RD_KAFKA_CONSUMER, conf, &r->rk));
  r->commits = (struct query_commits){ .rk = r->rk, .topic = r->topic, .tracker = r->tracker };
  kafka_stats_watch(r->rk, all.client);
  rd_kafka_poll_set_consumer(r->rk);
  TRY(query_queues_open(r->rk, &r->queues));
  former_member_begin(&r->former, former, r->rk);
  if (!*r->former.id)
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
    commit_and_wait(r);
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

  release_message(r);
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
  char *id = rd_kafka_memberid(r->rk);
  bool is_member = id && *id;

  if (id)
    rd_kafka_mem_free(r->rk, id);
  return is_member;
}

void query_reader_give_up(struct query_reader *r)
{
  if (!r->give_up_ns)
    r->give_up_ns = clock_now_ns() + DRAIN_MS * CLOCK_NS_PER_MS;
}

const char *query_reader_member(const struct query_reader *r)
{
  return r->member;
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
    commit_and_wait(*r);
  }
  offset_tracker_forget((*r)->tracker);
  query_reader_abandon(r);
}

/* ---- What is due from time to time ---- */

static void give_up_when_answered(struct query_reader *r, int64_t now_ns)
{
  if (!r->give_up_ns || (offset_tracker_n_open(r->tracker) > 0 && now_ns < r->give_up_ns))
    return;
  r->give_up_ns = 0;
  r->is_awaited = false;
  give_up_assignment(r);
  note_assigned(r, false, r->n_awaited);
}

/* Ask librdkafka for the member's id. Its main thread answers, and sends the heartbeat that is due. */
static void wake_client(struct query_reader *r, int64_t now_ns)
{
  if (now_ns < r->wake_due_ns)
    return;
  r->wake_due_ns = now_ns + WAKE_INTERVAL_MS * CLOCK_NS_PER_MS;
  char *id = rd_kafka_memberid(r->rk);
  if (id && strlen(id) <= QUERY_MEMBER_MAX)
    strcpy(r->member, id);
  if (id)
    rd_kafka_mem_free(r->rk, id);
}

static err_t look_for_former(struct query_reader *r, int64_t now_ns)
{
  if (!*r->former.id || former_member_is_there(&r->former, r->rk, r->group, now_ns))
    return ERR_OK;
  return subscribe(r);
}

static err_t do_what_is_due(struct query_reader *r, int64_t now_ns)
{
  if (may_commit(r))
    query_commits_begin(&r->commits, now_ns);
  give_up_when_answered(r, now_ns);
  wake_client(r, now_ns);
  return look_for_former(r, now_ns);
}

/* Return how long to wait for events and records: until something may be due. */
static int64_t wait_ns(const struct query_reader *r, int64_t left_ns)
{
  int64_t most_ns = left_ns;

  if (r->give_up_ns)
    most_ns = DRAIN_STEP_MS * CLOCK_NS_PER_MS;
  else if (r->commits.has_uncommitted)
    most_ns = QUERY_COMMITS_INTERVAL_MS * CLOCK_NS_PER_MS;
  return left_ns < most_ns ? left_ns : most_ns;
}

/* ---- A topic that disappears and returns ---- */

static void note_topic_away(struct query_reader *r, const char *reason)
{
  if (!atomic_exchange(&r->is_topic_away, true))
    log_warn("query_topic_away", "topic=%s reason=%s", r->topic, log_quote(span_of_str(reason)));
}

/* Join again when the topic is back. Reading begins at the group's positions if it still has them, else at the start.
 */
static err_t look_for_topic(struct query_reader *r, int64_t now_ns)
{
  if (r->is_rejoining || now_ns < r->away_due_ns)
    return ERR_OK;
  r->away_due_ns = now_ns + AWAY_INTERVAL_MS * CLOCK_NS_PER_MS;
  if (!kafka_topic_is_there(r->rk, r->topic, AWAY_TIMEOUT_MS))
    return ERR_OK;
  log_info("query_topic_back", "topic=%s", r->topic);
  r->is_rejoining = true;
  return subscribe(r);
}

/* ---- Polling ---- */

static void note_denied(struct query_reader *r, const char *what)
{
  if (atomic_exchange(&r->denied, what) != what)
    log_warn("query_denied", "topic=%s group=%s reason=%s", r->topic, r->group, log_quote(span_of_str(what)));
}

static void note_group_differs(struct query_reader *r)
{
  if (atomic_exchange(&r->denied, group_differs) != group_differs)
    log_warn("query_group_differs", "group=%s reason=%s", r->group, log_quote(span_of_str(group_differs)));
}

/* Handle an error message from one of the two queues. */
static err_t note_error(struct query_reader *r, const rd_kafka_message_t *m)
{
  const char *reason = rd_kafka_message_errstr(m);

  switch (m->err) {
  case RD_KAFKA_RESP_ERR_NO_ERROR: /* forward_records() prevents this */
    FAIL(ERR_KAFKA, "a query did not come from the queue of the partitions");
  case RD_KAFKA_RESP_ERR__FATAL:
    FAIL(ERR_KAFKA, "queries cannot be read: %s", reason);
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
  case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    note_topic_away(r, reason);
    return ERR_OK;
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    note_denied(r, topic_denied);
    return ERR_OK;
  case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    note_denied(r, group_denied);
    return ERR_OK;
  case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
    note_group_differs(r);
    return ERR_OK;
  case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
    atomic_store(&r->is_assigned, false);
    break;
  default:
    break;
  }
  log_warn("query_consumer", "error=%s reason=%s", rd_kafka_err2name(m->err), log_quote(span_of_str(reason)));
  return ERR_OK;
}

/* Serve the consumer's own queue. Callbacks get rebalances and results of commits; errors come as messages. */
static err_t serve_events(struct query_reader *r, int64_t now_ns)
{
  rd_kafka_message_t *m;

  r->events_due_ns = now_ns + EVENTS_INTERVAL_MS * CLOCK_NS_PER_MS;
  for (int i = 0; i < EVENTS_AT_ONCE && (m = rd_kafka_consumer_poll(r->rk, 0)); i++) {
    err_code_t err = note_error(r, m);
    rd_kafka_message_destroy(m);
    if (err != ERR_OK)
      return err;
  }
  return atomic_load(&r->is_topic_away) ? look_for_topic(r, now_ns) : ERR_OK;
}

/* Take the next record of our queue, if there is one. */
static err_t pop_record(struct query_reader *r, bool *has_record, struct query_record *out)
{
  uint32_t ticket;
  rd_kafka_message_t *m;

  while ((m = r->message = rd_kafka_consume_queue(r->queues.records, 0)) && m->err) {
    TRY(note_error(r, m));
    release_message(r);
  }
  if (!m)
    return ERR_OK;
  TRY(offset_tracker_begin(r->tracker, m->partition, m->offset, &ticket));
  r->commits.has_uncommitted = true;
  atomic_store(&r->denied, NULL);
  *out = (struct query_record){ kafka_record(m), kafka_trace_headers(m), ticket };
  *has_record = true;
  return ERR_OK;
}

err_t query_reader_poll(struct query_reader *r, int timeout_ms, bool takes_record, bool *has_record,
                        struct query_record *out)
{
  int64_t now_ns = clock_now_ns();
  int64_t end_ns = now_ns + timeout_ms * CLOCK_NS_PER_MS;

  release_message(r);
  *has_record = false;
  TRY(do_what_is_due(r, now_ns));
  if (now_ns >= r->events_due_ns)
    TRY(serve_events(r, now_ns));
  for (;;) {
    if (takes_record)
      TRY(pop_record(r, has_record, out));
    if (*has_record || now_ns >= end_ns)
      return ERR_OK;
    query_queues_wait(&r->queues, wait_ns(r, end_ns - now_ns));
    now_ns = clock_now_ns();
    TRY(serve_events(r, now_ns));
    TRY(do_what_is_due(r, now_ns));
  }
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
