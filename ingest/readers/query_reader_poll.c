/* SPDX-License-Identifier: Apache-2.0 */
/* Polling the query consumer: what is due from time to time, a topic that disappears and returns, events, records. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_group.h"
#include "ingest/kafka/kafka_topic.h"
#include "ingest/readers/query_reader_state.h"

/* Maximum wait for the group's events while records arrive, and maximum number of events handled at once. */
enum { EVENTS_INTERVAL_MS = 10, EVENTS_AT_ONCE = 64 };

/* How often to look whether partitions can be given up. */
enum { DRAIN_STEP_MS = 1 };

/* How often to wake librdkafka. Its main thread sleeps for up to half a second, and a heartbeat that is due waits. */
enum { WAKE_INTERVAL_MS = 100 };

/* Interval and timeout of looking for a missing topic. */
enum { AWAY_INTERVAL_MS = 1000, AWAY_TIMEOUT_MS = 500 };

static const char group_denied[] = "not allowed to use query.group";
static const char session_refused[] =
    "session.timeout.ms is outside the broker's group.min.session.timeout.ms and group.max.session.timeout.ms";
static const char group_differs[] = "another program in query.group shares partitions in another way: stop it";

/* ---- What is due from time to time ---- */

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
  return kafka_group_subscribe(r->rk, r->topic);
}

static err_t do_what_is_due(struct query_reader *r, int64_t now_ns)
{
  if (query_assignment_may_commit(r))
    query_commits_begin(&r->commits, now_ns);
  query_assignment_step(r, now_ns);
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
  return kafka_group_subscribe(r->rk, r->topic);
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
    note_denied(r, query_topic_denied);
    return ERR_OK;
  case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    note_denied(r, group_denied);
    return ERR_OK;
  case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
    note_denied(r, session_refused);
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
  bool is_replaced;
  rd_kafka_message_t *m;

  while ((m = r->message = rd_kafka_consume_queue(r->queues.records, 0)) && m->err) {
    TRY(note_error(r, m));
    query_reader_release_message(r);
  }
  if (!m)
    return ERR_OK;
  TRY(offset_tracker_begin(r->tracker, m->partition, m->offset, &ticket, &is_replaced));
  if (is_replaced)
    log_info("query_topic_replaced", "topic=%s partition=%" PRId32 " from=%" PRId64, r->topic, m->partition, m->offset);
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

  query_reader_release_message(r);
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
