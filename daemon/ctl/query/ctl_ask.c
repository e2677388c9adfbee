/* SPDX-License-Identifier: Apache-2.0 */
/* Send queries through Kafka and print the answers in the order of the queries. */
#include "daemon/ctl/query/ctl_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_asking.h"
#include "daemon/ctl/query/ctl_answer.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_print.h"
#include "daemon/ctl/text/ctl_say.h"
#include "ingest/wire/wire.h"

enum { TIMEOUT_MS_DEFAULT = 10000, POLL_MS = 20, ANSWERS_AT_ONCE = 256 };

err_t ctl_ask_init(const struct ctl_options *options, struct ctl_ask *out)
{
  *out = (struct ctl_ask){ .timeout_ms = TIMEOUT_MS_DEFAULT };
  TRY(ctl_queries_init(&out->queries));
  return ctl_context_open(options, &out->ctx);
}

void ctl_ask_fini(struct ctl_ask *a)
{
  ctl_progress_hide(&a->progress);
  topic_scan_close(&a->answers);
  sender_close(&a->sender);
  ctl_queries_fini(&a->queries);
  ctl_context_close(&a->ctx);
}

static void on_report(void *context, const struct sender_report *report)
{
  struct ctl_ask *a = context;
  size_t i = (size_t)(uintptr_t)report->opaque;
  char reason[256];

  if (report->fate == SENDER_DELIVERED)
    return;
  snprintf(reason, sizeof reason, "it did not reach Kafka: %s", report->reason);
  if (ctl_queries_fail(&a->queries, i, reason) != ERR_OK)
    ctl_say("%s", err_message());
}

/* Take the answers that have arrived. Wait up to timeout_ms for the first. */
static err_t take_answers(struct ctl_ask *a, int timeout_ms)
{
  struct topic_scan_record record;
  enum topic_scan_found found;

  for (int i = 0; i < ANSWERS_AT_ONCE; i++) {
    size_t n_before = a->queries.n_open;
    sender_poll(a->sender, 0);
    TRY(topic_scan_next(a->answers, i == 0 ? timeout_ms : 0, &record, &found));
    if (found != TOPIC_SCAN_RECORD)
      break;
    TRY(ctl_queries_take(&a->queries, record.value));
    if (a->queries.n_open < n_before)
      a->moved_ns = clock_now_ns();
  }
  ctl_progress_tick(&a->progress, a->queries.n - a->queries.n_open, a->queries.n - a->queries.n_open);
  return ERR_OK;
}

static bool is_overdue(const struct ctl_ask *a)
{
  return clock_now_ns() - a->moved_ns > (int64_t)a->timeout_ms * CLOCK_NS_PER_MS;
}

static err_t send_query(struct ctl_ask *a, size_t i)
{
  const struct ctl_query *query = &a->queries.items[i];
  const struct sender_header header = { "content-type", span_of_str(wire_content_type(WIRE_JSON)) };
  const struct sender_message message = {
    .topic = a->ctx->config->query.topic,
    .has_key = true,
    .key = span_of_str(query->id),
    .has_value = true,
    .value = span_of_str(query->text),
    .headers = &header,
    .n_headers = 1,
    .opaque = (void *)(uintptr_t)i,
  };
  err_code_t result;

  while ((result = sender_send(a->sender, &message)) == ERR_KAFKA_RETRY && !is_overdue(a))
    TRY(take_answers(a, POLL_MS));
  return result == ERR_OK ? ERR_OK : ctl_queries_fail(&a->queries, i, err_message());
}

static err_t ask_all(struct ctl_ask *a)
{
  a->moved_ns = clock_now_ns();
  ctl_progress_begin(&a->progress, "asking", a->queries.n);
  a->progress.unit = "queries";
  for (size_t i = 0; i < a->queries.n; i++) {
    TRY(send_query(a, i));
    if (i % ANSWERS_AT_ONCE == ANSWERS_AT_ONCE - 1)
      TRY(take_answers(a, 0));
  }
  while (a->queries.n_open > 0 && !is_overdue(a))
    TRY(take_answers(a, POLL_MS));
  ctl_progress_hide(&a->progress);
  return ERR_OK;
}

/* Print one answer. Returns false if there is none or it is an error. */
static bool print_answer(const struct ctl_ask *a, const struct ctl_query *query)
{
  if (!query->answer) {
    ctl_say("query %s: %s", query->id, query->failure ? query->failure : "no answer came in time");
    return false;
  }
  AUTO(ctl_json_close) json_t *answer = json_loadb(query->answer, query->n_answer, 0, NULL);
  AUTO(mem_free) char *error = ctl_asking_error(answer);
  if (error)
    ctl_say("query %s: %s", query->id, error);
  if (a->prints_json) {
    ctl_print_json(span_of(query->answer, query->n_answer), stdout);
    putchar('\n');
  } else if (!error) {
    ctl_answer_print(answer, stdout);
  }
  return !error;
}

/* Say where the queries went, and whether the daemon is there. */
static void explain_silence(const struct ctl_ask *a)
{
  const struct config *c = a->ctx->config;
  struct span line;
  bool is_ready;

  ctl_say("queries were written to topic %s, and answers are read from topic %s", c->query.topic,
          c->query.answer_topic);
  if (http_get_readyz(a->ctx->http, &is_ready, &line) != ERR_OK)
    ctl_say("%s", err_message());
  else if (!is_ready)
    ctl_say("the daemon at %s is not ready: %.*s", http_get_base(a->ctx->http), (int)line.n, (const char *)line.p);
  else
    ctl_say("the daemon at %s is ready: does it have the same topics?", http_get_base(a->ctx->http));
}

static err_t print_answers(const struct ctl_ask *a)
{
  uint64_t n_bad = a->n_unusable;
  bool is_silent = false;

  for (size_t i = 0; i < a->queries.n; i++) {
    const struct ctl_query *query = &a->queries.items[i];
    n_bad += !print_answer(a, query);
    is_silent |= !query->answer && !query->failure;
    fflush(stdout); /* keep the order with lines on standard error */
  }
  if (is_silent)
    explain_silence(a);
  if (n_bad)
    FAIL(ERR_QUERY, "%s of %s queries failed", ctl_format_count(n_bad).s,
         ctl_format_count(a->queries.n + a->n_unusable).s);
  return ERR_OK;
}

err_t ctl_ask_add(struct ctl_ask *a, const char *where, uint64_t line, struct span text)
{
  err_code_t result = ctl_queries_add(&a->queries, text, a->ctx->config->query.answer_topic);

  if (err_class(result) != ERR_CLASS_REJECT)
    return result;
  a->n_unusable++;
  ctl_say("%s %llu: %s", where, (unsigned long long)line, err_message());
  return ERR_OK;
}

err_t ctl_ask_format(void *ask, const char *name)
{
  struct ctl_ask *a = ask;

  a->prints_json = strcmp(name, "json") == 0;
  if (!a->prints_json && strcmp(name, "table") != 0)
    FAIL(ERR_USAGE, "--format expects table or json, not \"%s\"", name);
  return ERR_OK;
}

err_t ctl_ask_run(struct ctl_ask *a)
{
  if (a->queries.n > 0) {
    TRY(ctl_asking_open(a->ctx, on_report, a, &a->answers, &a->sender));
    TRY(ask_all(a));
  }
  return print_answers(a);
}
