/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding and checking a record, and the queries that wait until the catalogue is read far enough. */
#include "daemon/queries/query_intake.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/config/config_shard.h"
#include "daemon/delivery/record_letter.h"
#include "daemon/queries/query_check.h"

/* Waiting queries that one step releases: their replies wait in memory, and the next step looks how many do. */
enum { RECHECKED_MAX = 64 };

static void refuse(struct query_intake *in, struct pending_query *query, enum answer_error error, const char *message)
{
  reply_error(&in->reply, query, error, message, &in->scratch);
  query_queue_free_query(in->queue, query);
}

static void refuse_and_count(struct query_intake *in, struct pending_query *query, enum answer_error error,
                             const char *message)
{
  counters_add(&in->with->counters->refused, 1);
  refuse(in, query, error, message);
}

/* ---- Deadlines ---- */

/* Return the deadline by the monotonic clock: a later step of the wall clock does not change it. */
static int64_t deadline_of(const struct query *query, int64_t now_ns)
{
  int64_t left_ms, left_ns, deadline_ns;

  if (!query->has_deadline)
    return PENDING_NO_DEADLINE;
  bool is_far = __builtin_sub_overflow(query->deadline_unix_ms, clock_unix_ms(), &left_ms) ||
                __builtin_mul_overflow(left_ms, CLOCK_NS_PER_MS, &left_ns) ||
                __builtin_add_overflow(left_ns, now_ns, &deadline_ns);
  if (is_far)
    return query->deadline_unix_ms > 0 ? PENDING_NO_DEADLINE : 0;
  return deadline_ns;
}

static void push_query(struct query_intake *in, struct pending_query *query)
{
  char message[160];
  int64_t left_ns = query->deadline_ns - clock_now_ns();

  if (query->deadline_ns != PENDING_NO_DEADLINE) {
    int64_t estimate_ns = query_queue_estimate_ns(in->queue, query);
    if (left_ns < estimate_ns) {
      snprintf(message, sizeof message,
               "the deadline is in %" PRId64 " ms, and the answer would take about %" PRId64 " ms",
               left_ns / CLOCK_NS_PER_MS, estimate_ns / CLOCK_NS_PER_MS);
      refuse_and_count(in, query, ANSWER_DEADLINE_PASSED, message);
      return;
    }
  }
  if (query->traced)
    query->traced->queued_ns = clock_now_ns();
  query_queue_push(in->queue, query);
}

/* ---- Waiting for at_least ---- */

static void refuse_unseen(struct query_intake *in, struct pending_query *query, int64_t now_ns)
{
  bool is_late = query->deadline_ns <= now_ns;
  enum at_least_end end = is_late ? AT_LEAST_DEADLINE : query->query.no_wait ? AT_LEAST_NO_WAIT : AT_LEAST_TIMEOUT;
  char message[400];

  at_least_explain(&in->sources, &query->query, end, &in->explain_scratch, message, sizeof message);
  refuse(in, query, is_late ? ANSWER_DEADLINE_PASSED : ANSWER_NOT_SEEN, message);
}

void query_intake_recheck(struct query_intake *in)
{
  int64_t now_ns = clock_now_ns();

  for (struct pending_query *query = at_least_list_take_ended(&in->waiting, &in->sources, now_ns, RECHECKED_MAX), *next;
       query; query = next) {
    next = query->next;
    if (query->traced)
      query->traced->waited_ns = now_ns;
    if (query->is_seen)
      push_query(in, query);
    else
      refuse_unseen(in, query, now_ns);
  }
}

static void wait_for_at_least(struct query_intake *in, struct pending_query *query)
{
  if (!at_least_list_has_room(&in->waiting, query)) {
    refuse_and_count(in, query, ANSWER_UNAVAILABLE,
                     "too many queries wait for their at_least: send the query again later");
    return;
  }
  query->give_up_ns =
      query->received_ns + (int64_t)config_number(&in->with->config->query.at_least_timeout_ms) * CLOCK_NS_PER_MS;
  at_least_list_push(&in->waiting, query);
}

/* ---- Taking queries ---- */

static void send_dead_letter(struct query_intake *in, const struct query_record *taken, err_code_t err)
{
  const struct config *config = in->with->config;
  struct dead_letter letter =
      record_letter_of(&taken->record, config->catalogue.dead_letter_topic, config->query.topic, err);

  letter.waiter = DEAD_LETTER_WAITER_QUERY;
  letter.ticket = taken->ticket;
  delivery_send_dead_letter(in->with->delivery, &letter);
}

/* A record that is no query is one for every shard: the first one sends the letter for all. */
static void send_dead_letter_once(struct query_intake *in, const struct query_record *taken, err_code_t err)
{
  if (in->with->config->catalogue.shard == 0)
    send_dead_letter(in, taken, err);
  else
    offset_tracker_done(in->with->tracker, taken->ticket);
}

/* Do boosts need a time that nobody has given? */
static bool has_ages(const struct query *query)
{
  bool has_age = false;

  for (size_t i = 0; i < query->n_boosts; i++)
    has_age |= query->boosts[i].half_life_ms > 0;
  return has_age && !query->has_now;
}

/* Ages in boosts are counted to the timestamp of the query's record: it is the same for every daemon that answers. */
static void date_boosts(struct pending_query *query)
{
  bool has_time = query->timestamp_ms >= 0;

  if (!query->query.has_now)
    query->query.now_unix_ms = has_time ? query->timestamp_ms : clock_unix_ms();
}

static void begin_trace(struct query_intake *in, struct pending_query *query)
{
  query->traced = tracing_begin(in->with->tracing, &query->trace, query->received_ns);
  if (!query->traced)
    return;
  query->traced->partition = query->partition;
  query->traced->offset = query->offset;
}

static err_t check_query(const struct query_intake *in, struct pending_query *query)
{
  TRY(reply_verify_topic(in->with->config, query->query.reply_topic)); /* its error goes to the answer topic */
  if (query->is_key_too_long)
    FAIL(ERR_QUERY, "the record's key is longer than %d bytes, and the answer would carry it", QUERY_KEY_MAX);
  if (query->query.exclude_seen_by.n > 0 && !in->with->seen)
    FAIL(ERR_QUERY, "exclude_seen_by: the daemon reads no seen topic: configure seen.topic");
  if (query->query.n_likes > 0 && config_is_shard(in->with->config))
    FAIL(ERR_QUERY, "like: the catalogue is sharded, and no shard has every item: send data in the query");
  if (config_is_shard(in->with->config) && query->timestamp_ms < 0 && has_ages(&query->query))
    FAIL(ERR_QUERY, "now_unix_ms is missing: the record has no timestamp, and all shards must count ages to one time");
  date_boosts(query);
  query->space = config_find_space(in->with->config, query->query.space);
  TRY(query_check(in->with->engine, in->with->switches, query));
  TRY(engine_check_filter(in->with->engine, &query->query, &query->region));
  if (query->query.tree)
    query_queue_weigh(in->queue, query); /* with the tree */
  return ERR_OK;
}

/* A query that waits holds back the commits of all that are read after it, and those are bounded:
 * QUERY_INTAKE_HELD_MAX. So no more of the background are taken once half of that is held. */
static bool has_room_for_background(struct query_intake *in, struct pending_query *query)
{
  return offset_tracker_n_held(in->with->tracker) < QUERY_INTAKE_HELD_MAX / 2 &&
         query_queue_take_background(in->queue, query);
}

static void accept(struct query_intake *in, struct pending_query *query)
{
  config_shard_keep(in->with->config, query->query.at_least, &query->query.n_at_least);
  query->query.mmr.is_left_open = config_is_shard(in->with->config);
  err_code_t err = check_query(in, query);

  if (err != ERR_OK)
    refuse(in, query, reply_error_of(err), err_message());
  else if (query->deadline_ns < query->received_ns)
    refuse_and_count(in, query, ANSWER_DEADLINE_PASSED, "the deadline had passed when the query was read");
  else if (query->query.is_background && !has_room_for_background(in, query))
    refuse_and_count(in, query, ANSWER_UNAVAILABLE, "too many background queries wait: send the query again later");
  else if (at_least_is_reached(&in->sources, &query->query))
    push_query(in, query);
  else if (query->query.no_wait)
    refuse_unseen(in, query, query->received_ns);
  else
    wait_for_at_least(in, query);
}

/* The reply carries the key, so a key that is too long for most topics is left out. */
static err_t take_key(const struct topic_record *record, struct pending_query *query)
{
  query->is_key_too_long = record->key.n > QUERY_KEY_MAX;
  query->has_key = record->has_key && !query->is_key_too_long;
  return region_copy(&query->region, query->has_key ? record->key : (struct span){ 0 }, &query->key);
}

/* Copy what the reply needs of the record. */
static err_t note_record(struct query_intake *in, const struct query_record *taken, struct pending_query *query)
{
  const struct topic_record *record = &taken->record;

  query->query = (struct query){ 0 };
  query->format = wire_format_of(record->value, record->content_type);
  query->ticket = taken->ticket;
  query->received_ns = clock_now_ns();
  age_watch_look(&in->ages);
  query->asked_ns = age_watch_written_ns(&in->ages, record->timestamp_ms, query->received_ns);
  query->partition = record->partition;
  query->offset = record->offset;
  query->timestamp_ms = record->timestamp_ms;
  query->deadline_ns = PENDING_NO_DEADLINE;
  for (size_t i = 0; i < TRACE_HEADERS; i++)
    TRY(region_copy(&query->region, taken->trace.value[i], &query->trace.value[i]));
  return take_key(record, query);
}

err_t query_intake_take(struct query_intake *in, const struct query_record *taken, struct pending_query *query)
{
  counters_add(&in->with->counters->queries, 1);
  TRY(note_record(in, taken, query));
  begin_trace(in, query);
  err_code_t err = wire_decode_query(taken->record.value, query->format, &query->region, &query->query);
  query_queue_weigh(in->queue, query);
  if (err == ERR_OK) {
    query->deadline_ns = deadline_of(&query->query, query->received_ns);
    if (query->query.is_background)
      query->asked_ns = 0; /* it may wait long, which says nothing of the others' answers */
    accept(in, query);
  } else if (err == ERR_WIRE || err == ERR_TOO_LARGE) {
    query_trace_note_error(query->traced, "DEAD_LETTER", err_message());
    tracing_end(in->with->tracing, query->traced, false);
    send_dead_letter_once(in, taken, err);
    query_queue_free_query(in->queue, query);
  } else if (err_class(err) == ERR_CLASS_REJECT) {
    refuse(in, query, ANSWER_BAD_QUERY, err_message());
  } else {
    return err;
  }
  return ERR_OK;
}

/* ---- Opening, and queries that are given up ---- */

void query_intake_init(const struct query_thread_context *context, struct query_queue *queue, size_t max_waiting,
                       struct query_intake *out)
{
  *out = (struct query_intake){
    .with = context,
    .reply = { .delivery = context->delivery,
               .counters = context->counters,
               .config = context->config,
               .never_blocks = true }, /* the thread has to poll. It takes no query while too many replies wait */
    .queue = queue,
    .sources = { context->engine, context->seen },
    .waiting = { .max_queries = max_waiting, .max_bytes = context->config->query.memory_bytes / 2 },
  };
}

void query_intake_fini(struct query_intake *in)
{
  region_fini(&in->scratch);
  region_fini(&in->explain_scratch);
}

static void drop(struct query_intake *in, struct pending_query *queries)
{
  for (struct pending_query *query = queries, *next; query; query = next) {
    next = query->next;
    tracing_drop(in->with->tracing, query->traced);
    offset_tracker_done(in->with->tracker, query->ticket); /* its assignment is over: this commits nothing */
    query_queue_free_query(in->queue, query);
  }
}

void query_intake_drop(struct query_intake *in)
{
  drop(in, at_least_list_take_all(&in->waiting));
  drop(in, query_queue_take_all(in->queue));
}

void query_intake_refuse_waiting(struct query_intake *in)
{
  in->reply.never_blocks = false; /* nothing is polled any more */
  for (struct pending_query *query = at_least_list_take_all(&in->waiting), *next; query; query = next) {
    next = query->next;
    if (query->traced)
      query->traced->waited_ns = clock_now_ns();
    refuse(in, query, ANSWER_UNAVAILABLE, "the daemon is stopping: send the query again");
  }
}
