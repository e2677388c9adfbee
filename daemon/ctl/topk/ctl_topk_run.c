/* SPDX-License-Identifier: Apache-2.0 */
/* A slot for each query that waits for its answer. Queries have ids of this run on their way, so that a late answer to
 * another run is not taken for one to this. */
#include "daemon/ctl/topk/ctl_topk_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_interrupt.h"
#include "daemon/ctl/query/ctl_answer.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_progress.h"
#include "daemon/ctl/text/ctl_say.h"
#include "ingest/kafka/sender.h"
#include "ingest/kafka/topics.h"
#include "ingest/readers/topic_scan.h"
#include "ingest/wire/wire.h"

enum {
  ASKED_BYTES = 96,
  POLL_MS = 20,
  LAST_WAIT_MS = 1000, /* after Ctrl-C */
  TRIES_MAX = 3,       /* of a query that stays without an answer while others get theirs */
  SAID_MAX = 20,       /* failures that are reported one by one */
};

struct slot {
  struct ctl_topk_query query; /* its id is NULL: the slot is free */
  char asked[ASKED_BYTES];     /* the id on the way */
  char *text;
  int64_t sent_ns;
  unsigned n_tries;
};

struct run {
  struct ctl_context *ctx;
  const struct ctl_topk_plan *plan;
  struct ctl_topk_queries *queries;
  struct ctl_topk_output *output;
  struct ctl_topk_result *result;
  struct sender *sender;
  struct topic_scan *answers;
  struct ctl_progress progress;
  struct slot *slots; /* [plan->n_in_flight] */
  size_t *free_slots; /* [n_free] */
  size_t n_free;
  uint64_t series, n_asked;
  bool has_all;     /* all queries of the file were read */
  int64_t moved_ns; /* when the newest answer came */
};

static void clear_slot(struct slot *s)
{
  ctl_topk_query_fini(&s->query);
  mem_free(&s->text);
}

static void run_fini(struct run *r)
{
  ctl_progress_hide(&r->progress);
  topic_scan_close(&r->answers);
  sender_close(&r->sender);
  for (size_t i = 0; r->slots && i < r->plan->n_in_flight; i++)
    clear_slot(&r->slots[i]);
  mem_free(&r->slots);
  mem_free(&r->free_slots);
}

static size_t count_open(const struct run *r)
{
  return r->plan->n_in_flight - r->n_free;
}

static void free_slot(struct run *r, struct slot *s)
{
  clear_slot(s);
  r->free_slots[r->n_free++] = (size_t)(s - r->slots);
}

/* Report that a query of the file failed. */
static void say_failed(struct run *r, uint64_t number, const char *reason)
{
  const char *what = r->queries->file ? "line" : "row";

  ctl_progress_hide(&r->progress);
  if (r->result->n_failed++ < SAID_MAX)
    ctl_say("%s %" PRIu64 ": %s", what, number, reason);
  else if (r->result->n_failed == SAID_MAX + 1)
    ctl_say("more failures are counted, but not reported");
}

static void fail_slot(struct run *r, struct slot *s, const char *reason)
{
  say_failed(r, s->query.number, reason);
  free_slot(r, s);
}

/* ---- Sending ---- */

static void on_report(void *context, const struct sender_report *report)
{
  struct run *r = context;
  struct slot *s = &r->slots[(size_t)(uintptr_t)report->opaque];

  if (report->fate != SENDER_DELIVERED && report->fate != SENDER_CLOSED && s->query.id)
    fail_slot(r, s, report->reason);
}

/* If the queue is full, the query is sent with the next call. */
static void send_slot(struct run *r, struct slot *s)
{
  const struct sender_header header = { "content-type", span_of_str(wire_content_type(WIRE_JSON)) };
  const struct sender_message message = {
    .topic = r->ctx->config->query.topic,
    .has_key = true,
    .key = span_of_str(s->asked),
    .has_value = true,
    .value = span_of_str(s->text),
    .headers = &header,
    .n_headers = 1,
    .opaque = (void *)(uintptr_t)(s - r->slots),
  };

  err_code_t result = sender_send(r->sender, &message);
  s->sent_ns = result == ERR_OK ? clock_now_ns() : 0;
  s->n_tries += result == ERR_OK;
  if (result != ERR_OK && result != ERR_KAFKA_RETRY)
    fail_slot(r, s, err_message());
}

/* Put a query into a slot and send it. */
static err_t ask(struct run *r, struct ctl_topk_query *query)
{
  size_t i = r->free_slots[r->n_free - 1];
  struct slot *s = &r->slots[i];

  *s = (struct slot){ 0 };
  snprintf(s->asked, sizeof s->asked, "topk-%" PRIx64 "-%zu-%" PRIu64, r->series, i, r->n_asked++);
  if (json_object_set_new(query->json, "id", json_string(s->asked)) != 0)
    FAIL(ERR_MEMORY, "no memory for a query");
  s->text = json_dumps(query->json, JSON_COMPACT | JSON_REAL_PRECISION(17));
  if (!s->text)
    FAIL(ERR_MEMORY, "no memory for a query");
  r->n_free--;
  json_decref(query->json);
  query->json = NULL;
  s->query = *query;
  query->id = NULL;
  send_slot(r, s);
  return ERR_OK;
}

static err_t ask_next(struct run *r)
{
  AUTO(ctl_topk_query_fini) struct ctl_topk_query query = { 0 };
  err_code_t result = ctl_topk_queries_next(r->queries, &query);

  if (err_class(result) == ERR_CLASS_REJECT) {
    say_failed(r, query.number, err_message());
    return ERR_OK;
  }
  TRY(result);
  if (!query.id) {
    r->has_all = true;
    return ERR_OK;
  }
  if (ctl_topk_output_has(r->output, query.id)) {
    r->result->n_known++;
    return ERR_OK;
  }
  return ask(r, &query);
}

/* Send again what has waited for long: what the queue had no room for, and a query whose answer was lost. */
static void send_again(struct run *r)
{
  int64_t old_ns = clock_now_ns() - (int64_t)r->plan->timeout_ms * CLOCK_NS_PER_MS;

  for (size_t i = 0; i < r->plan->n_in_flight; i++) {
    struct slot *s = &r->slots[i];
    if (!s->query.id || s->sent_ns > old_ns)
      continue;
    if (s->n_tries < TRIES_MAX)
      send_slot(r, s);
    else
      fail_slot(r, s, "no answer came");
  }
}

/* ---- Answers ---- */

/* Return the slot of a query by its id on the way; NULL: it is not of this run, or has its answer. */
static struct slot *find_slot(struct run *r, const char *asked)
{
  uint64_t series;
  size_t i;

  if (!asked || sscanf(asked, "topk-%" SCNx64 "-%zu-", &series, &i) != 2 || series != r->series ||
      i >= r->plan->n_in_flight || !r->slots[i].query.id || strcmp(r->slots[i].asked, asked) != 0)
    return NULL;
  return &r->slots[i];
}

static err_t take_answer(struct run *r, struct span text)
{
  AUTO(ctl_json_close) json_t *answer = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL, NULL);
  AUTO(mem_free) char *error = ctl_answer_error(answer);
  struct slot *s = find_slot(r, json_string_value(json_object_get(answer, "id")));

  if (!s)
    return ERR_OK;
  r->moved_ns = clock_now_ns();
  if (error) {
    fail_slot(r, s, error);
    return ERR_OK;
  }
  TRY(ctl_topk_output_add(r->output, s->query.id, s->asked, text));
  r->result->n_answered++;
  r->result->n_inexact += !json_is_true(json_object_get(json_object_get(answer, "receipt"), "exact"));
  free_slot(r, s);
  return ERR_OK;
}

/* Take the answers that have come. Wait for the first. */
static err_t take_answers(struct run *r)
{
  struct topic_scan_record record;
  enum topic_scan_found found;

  for (uint64_t i = 0; i < r->plan->n_in_flight; i++) {
    TRY(topic_scan_next(r->answers, i == 0 ? POLL_MS : 0, &record, &found));
    if (found != TOPIC_SCAN_RECORD)
      break;
    TRY(take_answer(r, record.value));
  }
  sender_poll(r->sender, 0);
  return ERR_OK;
}

/* ---- The run ---- */

static err_t verify_movement(const struct run *r, int64_t timeout_ms)
{
  const struct config *c = r->ctx->config;

  if (clock_now_ns() - r->moved_ns <= timeout_ms * CLOCK_NS_PER_MS)
    return ERR_OK;
  FAIL(ERR_QUERY,
       "no answer came within %s. Queries were written to topic %s, and answers are read from topic %s: see sluicectl "
       "status, and run the same command again to go on",
       ctl_format_span(timeout_ms * CLOCK_NS_PER_MS).s, c->query.topic, c->query.answer_topic);
}

static bool is_over(const struct run *r)
{
  return count_open(r) == 0 && (r->has_all || ctl_interrupt_came());
}

static void show_progress(struct run *r)
{
  const struct ctl_topk_result *result = r->result;

  ctl_progress_tick(&r->progress, result->n_known + result->n_answered + result->n_failed, result->n_answered);
}

static err_t ask_all(struct run *r)
{
  int64_t began_ns = clock_now_ns(), stop_ns = 0;

  r->moved_ns = began_ns;
  ctl_progress_begin(&r->progress, "asking", r->queries->n_rows);
  r->progress.unit = "queries";
  while (!is_over(r)) {
    bool is_idle = count_open(r) == 0;
    while (r->n_free > 0 && !r->has_all && !ctl_interrupt_came())
      TRY(ask_next(r));
    if (is_idle)
      r->moved_ns = clock_now_ns(); /* it waited for the file */
    TRY(take_answers(r));
    send_again(r);
    show_progress(r);
    TRY(verify_movement(r, (int64_t)r->plan->timeout_ms));
    if (ctl_interrupt_came() && stop_ns == 0)
      stop_ns = clock_now_ns() + LAST_WAIT_MS * CLOCK_NS_PER_MS;
    if (stop_ns && clock_now_ns() > stop_ns)
      break;
  }
  return ERR_OK;
}

/* Open the scan before the sender, or early answers would be missed. */
static err_t open_clients(struct run *r)
{
  static const struct topic_scan_range from_now_on = { .follows = true };
  static const struct kafka_property defaults[] = { { "linger.ms", "0" }, { "message.timeout.ms", "30000" } };
  const struct config *c = r->ctx->config;
  struct kafka_layers queries, answers;
  int n;

  TRY(ctl_context_layers(r->ctx, defaults, sizeof defaults / sizeof defaults[0], &c->query.kafka, &queries));
  TRY(ctl_context_layers(r->ctx, NULL, 0, &c->query.answer_kafka, &answers));
  TRY(topics_count_partitions(&queries, c->query.topic, CTL_KAFKA_TIMEOUT_MS, &n));
  TRY(topic_scan_open(&answers, c->query.answer_topic, &from_now_on, CTL_KAFKA_TIMEOUT_MS, &r->answers));
  return sender_open(&queries, on_report, r, &r->sender);
}

static err_t init_slots(struct run *r)
{
  size_t n = r->plan->n_in_flight;

  TRY(mem_array(n, sizeof *r->slots, &r->slots));
  TRY(mem_array(n, sizeof *r->free_slots, &r->free_slots));
  for (size_t i = n; i-- > 0;)
    r->free_slots[r->n_free++] = i;
  return ERR_OK;
}

err_t ctl_topk_run(struct ctl_context *ctx, const struct ctl_topk_plan *plan, struct ctl_topk_queries *queries,
                   struct ctl_topk_output *output, struct ctl_topk_result *out)
{
  AUTO(run_fini)
  struct run r = { .ctx = ctx, .plan = plan, .queries = queries, .output = output, .result = out };

  *out = (struct ctl_topk_result){ 0 };
  r.series = (uint64_t)clock_unix_ms() << 16 ^ (uint64_t)getpid();
  TRY(init_slots(&r));
  TRY(open_clients(&r));
  int64_t began_ns = clock_now_ns();
  err_code_t result = ask_all(&r);
  out->took_ns = clock_now_ns() - began_ns;
  out->is_interrupted = ctl_interrupt_came();
  return result;
}
