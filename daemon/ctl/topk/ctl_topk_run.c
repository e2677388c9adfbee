/* SPDX-License-Identifier: Apache-2.0 */
/* A slot for each query that waits for its answer. Queries have ids of this run on their way, so that a late answer to
 * another run is not taken for one to this. */
#include "daemon/ctl/topk/ctl_topk_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_asking.h"
#include "daemon/ctl/ctl_interrupt.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_progress.h"
#include "daemon/ctl/text/ctl_say.h"
#include "ingest/wire/wire.h"

enum {
  ASKED_BYTES = 96,
  POLL_MS = 20,
  LAST_WAIT_MS = 1000, /* after Ctrl-C */
  TRIES_MAX = 20,      /* of a query that others have overtaken, or that was answered "send it again" */
  AGAIN_MS = 500,      /* between two of them */
  SAID_MAX = 20,       /* failures that are reported one by one */
  SLOT_BITS = 20,      /* of a message's mark, which has the number of the query above them */
};

struct slot {
  struct ctl_topk_query query; /* its id is NULL: the slot is free */
  char asked[ASKED_BYTES];     /* the id on the way */
  char *text;
  uint64_t turn;                  /* the number of the query among all that were asked */
  int64_t sent_ns;                /* the last time */
  int64_t due_ns;                 /* when it is to be sent again; INT64_MAX: not until others overtake it */
  unsigned n_tries, n_unreported; /* sent; and of these, whose fate is not known */
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
  bool has_all;        /* all queries of the file were read */
  int64_t moved_ns;    /* when the newest answer came */
  int64_t overtook_ns; /* when the newest query that has an answer was sent */
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
  const char *what = r->queries->has_lines ? "line" : "row";

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

/* Return the slot that a message was of; NULL: another query has it now. */
static struct slot *slot_of_mark(struct run *r, const void *mark)
{
  uint64_t number = (uint64_t)(uintptr_t)mark;
  struct slot *s = &r->slots[number & ((1u << SLOT_BITS) - 1)];

  return s->query.id && s->turn == number >> SLOT_BITS ? s : NULL;
}

/* What Kafka did not take is sent again, unless another try is on its way. */
static void on_report(void *context, const struct sender_report *report)
{
  struct run *r = context;
  struct slot *s = slot_of_mark(r, report->opaque);

  if (!s)
    return;
  s->n_unreported--;
  if (report->fate == SENDER_DELIVERED || report->fate == SENDER_CLOSED || s->n_unreported > 0)
    return;
  if (report->fate == SENDER_AWAY || report->fate == SENDER_UNSURE)
    s->due_ns = clock_now_ns() + AGAIN_MS * CLOCK_NS_PER_MS;
  else
    fail_slot(r, s, report->reason);
}

/* If the queue is full, the query is due once more. */
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
    .opaque = (void *)(uintptr_t)(s->turn << SLOT_BITS | (uint64_t)(s - r->slots)),
  };

  err_code_t result = sender_send(r->sender, &message);
  int64_t now_ns = clock_now_ns();
  s->due_ns = result == ERR_OK ? INT64_MAX : now_ns + POLL_MS * CLOCK_NS_PER_MS;
  if (result == ERR_OK) {
    s->sent_ns = now_ns;
    s->n_tries++;
    s->n_unreported++;
  } else if (result != ERR_KAFKA_RETRY) {
    fail_slot(r, s, err_message());
  }
}

/* Put a query into a slot and send it. */
static err_t ask(struct run *r, struct ctl_topk_query *query)
{
  size_t i = r->free_slots[r->n_free - 1];
  struct slot *s = &r->slots[i];

  clear_slot(s);
  *s = (struct slot){ .turn = r->n_asked++ };
  snprintf(s->asked, sizeof s->asked, "topk-%" PRIx64 "-%zu-%" PRIu64, r->series, i, s->turn);
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

/* has_one  false: there is none yet, or no more */
static err_t ask_next(struct run *r, bool *has_one)
{
  AUTO(ctl_topk_query_fini) struct ctl_topk_query query = { 0 };
  err_code_t result = ctl_topk_queries_next(r->queries, &query);

  *has_one = true;
  if (err_class(result) == ERR_CLASS_REJECT) {
    say_failed(r, query.number, err_message());
    return ERR_OK;
  }
  TRY(result);
  if (!query.id) {
    *has_one = false;
    r->has_all = ctl_topk_queries_have_ended(r->queries);
    return ERR_OK;
  }
  if (ctl_topk_output_has(r->output, query.id)) {
    r->result->n_known++;
    return ERR_OK;
  }
  return ask(r, &query);
}

/* Is the answer lost? Queries that were sent long after this one have theirs. */
static bool is_overtaken(const struct run *r, const struct slot *s)
{
  return r->overtook_ns - s->sent_ns > (int64_t)r->plan->timeout_ms * CLOCK_NS_PER_MS;
}

static void send_again(struct run *r)
{
  int64_t now_ns = clock_now_ns();

  for (size_t i = 0; i < r->plan->n_in_flight; i++) {
    struct slot *s = &r->slots[i];
    if (!s->query.id || (s->due_ns > now_ns && !is_overtaken(r, s)))
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

static bool is_error(const json_t *answer, const char *code)
{
  const char *found = json_string_value(json_object_get(json_object_get(answer, "error"), "code"));

  return found && strcmp(found, code) == 0;
}

/* Does protocol.md say of an error: send it again? */
static bool may_pass(const json_t *answer)
{
  return is_error(answer, "UNAVAILABLE") || is_error(answer, "NOT_SEEN") || is_error(answer, "PARTIAL");
}

/* Take an error. One that may pass does not count as an answer: if there is nothing else, the run ends in time. A
 * daemon that has no room for more of the background has it again when others are answered. */
static void take_error(struct run *r, struct slot *s, const json_t *answer, const char *error)
{
  if (is_error(answer, "UNAVAILABLE") && s->n_tries > 0) /* one sending may be answered twice */
    s->n_tries--;
  if (may_pass(answer) && s->n_tries < TRIES_MAX) {
    s->due_ns = clock_now_ns() + AGAIN_MS * CLOCK_NS_PER_MS;
    return;
  }
  r->moved_ns = clock_now_ns();
  fail_slot(r, s, error);
}

static err_t take_answer(struct run *r, struct span text)
{
  AUTO(ctl_json_close) json_t *answer = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL, NULL);
  AUTO(mem_free) char *error = ctl_asking_error(answer);
  struct slot *s = find_slot(r, json_string_value(json_object_get(answer, "id")));

  if (s && error)
    take_error(r, s, answer, error);
  if (!s || error)
    return ERR_OK;
  TRY(ctl_topk_output_add(r->output, s->query.id, s->asked, text));
  r->moved_ns = clock_now_ns();
  r->overtook_ns = s->sent_ns > r->overtook_ns ? s->sent_ns : r->overtook_ns;
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

/* Ask as many as may wait for their answers. */
static err_t ask_more(struct run *r)
{
  bool has_one = !r->has_all;

  while (has_one && r->n_free > 0 && !ctl_interrupt_came())
    TRY(ask_next(r, &has_one));
  return ERR_OK;
}

static err_t ask_all(struct run *r)
{
  int64_t began_ns = clock_now_ns(), stop_ns = 0;

  r->moved_ns = began_ns;
  ctl_progress_begin(&r->progress, "asking", r->queries->n_rows);
  r->progress.unit = "queries";
  while (!is_over(r)) {
    bool is_idle = count_open(r) == 0;
    TRY(ask_more(r));
    if (is_idle)
      r->moved_ns = clock_now_ns(); /* it waited for the file */
    TRY(take_answers(r));
    send_again(r);
    show_progress(r);
    TRY(ctl_topk_output_flush(r->output));
    TRY(verify_movement(r, (int64_t)r->plan->timeout_ms));
    if (ctl_interrupt_came() && stop_ns == 0)
      stop_ns = clock_now_ns() + LAST_WAIT_MS * CLOCK_NS_PER_MS;
    if (stop_ns && clock_now_ns() > stop_ns)
      break;
  }
  return ERR_OK;
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
  r.series = ctl_asking_series();
  TRY(init_slots(&r));
  TRY(ctl_asking_open(ctx, on_report, &r, &r.answers, &r.sender));
  int64_t began_ns = clock_now_ns();
  err_code_t result = ask_all(&r);
  out->took_ns = clock_now_ns() - began_ns;
  out->has_begun = true;
  out->is_interrupted = !r.has_all || count_open(&r) > 0;
  return result;
}
