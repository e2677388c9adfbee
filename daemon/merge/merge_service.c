/* SPDX-License-Identifier: Apache-2.0 */
/* Open the parts of the role merge in order, and close them in reverse order. */
#include "daemon/merge/merge_service.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/http/http.h"
#include "daemon/merge/merge_pages.h"
#include "daemon/merge/merge_thread.h"
#include "daemon/setup/tracing_setup.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_trouble.h"

enum { CLIENTS_TIMEOUT_S = 5, WINDOW_S = 60 };

struct merge_service {
  struct counters counters;
  struct merge_counters merge_counters;
  struct merge_windows windows;
  int64_t windows_due_ns; /* when they are turned */
  struct alarm alarm;
  struct readiness readiness;
  struct kafka_setup kafka;
  struct shards_heard *heard;
  struct tracing *tracing; /* NULL: there is no collector */
  struct merge_thread *thread;
  struct merge_view view;
  struct other_pages pages;
  struct status status; /* of the HTTP endpoint */
  struct http *http;
};

static err_t open_parts(const struct config *config, struct merge_service *s)
{
  s->status.config = config;
  s->status.readiness = &s->readiness;
  s->status.kafka = &s->kafka;
  s->status.counters = &s->counters;
  s->status.started_ns = clock_now_ns();
  s->status.other = &s->pages;
  readiness_set_silently(&s->readiness, "starting");
  TRY(alarm_init(&s->alarm));
  TRY(kafka_setup_open(config, &s->kafka));
  TRY(shards_heard_open(&s->heard));
  s->view = (struct merge_view){
    .config = config,
    .bootstrap = kafka_setup_bootstrap(&s->kafka),
    .counters = &s->counters,
    .merge_counters = &s->merge_counters,
    .windows = &s->windows,
    .heard = s->heard,
    .started_ns = s->status.started_ns,
  };
  s->pages = merge_pages(&s->view);
  TRY(tracing_setup_open(config, &s->counters, &s->alarm, &s->tracing));
  struct merge_thread_context context = {
    config, &s->kafka, &s->counters, &s->merge_counters, s->heard, &s->alarm, s->tracing,
  };
  TRY(merge_thread_open(&context, &s->thread));
  return http_open(config->http.listen, &config->http.hosts, &s->status, &s->http);
}

static err_code_t open_all(void *service, const struct config *config)
{
  TRY(open_parts(config, service));
  log_info("started", "version=%s role=merge config=%s", SLUICE_VERSION, config->path);
  return ERR_OK;
}

/* The windows begin with zeros, so the first ones are those since the start. */
static void turn_windows(struct merge_service *s)
{
  if (clock_now_ns() < s->windows_due_ns)
    return;
  if (s->windows_due_ns) {
#define MERGE_TURN(field, name, help) hist_window_turn(&s->windows.field, &s->merge_counters.field);
    MERGE_HISTS(MERGE_TURN)
#undef MERGE_TURN
    hist_window_turn(&s->windows.answer_us, &s->counters.answer_us);
  }
  s->windows_due_ns = clock_now_ns() + WINDOW_S * CLOCK_NS_PER_S;
}

static err_code_t step(void *service)
{
  struct merge_service *s = service;
  const char *reason = merge_thread_not_ready(s->thread);
  const char *trouble = reason ? kafka_trouble_newest() : NULL;

  turn_windows(s);
  readiness_set(&s->readiness, trouble ? trouble : reason);
  return ERR_OK;
}

static void print_line(void *service, char *text, size_t n)
{
  struct merge_service *s = service;
  const char *not_ready = readiness_reason(&s->readiness);

  snprintf(text, n, "%s%s; merge: %" PRIu64 " queries open, %" PRIu64 " answered", not_ready ? "not ready: " : "ready",
           not_ready ? not_ready : "", atomic_load(&s->merge_counters.open_queries),
           counters_get(&s->counters.answers));
}

static bool close_all(void *service)
{
  struct merge_service *s = service;

  readiness_set_silently(&s->readiness, "stopping");
  kafka_closing_together();
  http_close(&s->http);
  merge_thread_close(&s->thread);
  tracing_close(&s->tracing);
  kafka_closing_wait(clock_now_ns() + CLIENTS_TIMEOUT_S * CLOCK_NS_PER_S);
  bool is_closed = kafka_closing_log_left() == 0;
  kafka_setup_close(&s->kafka);
  shards_heard_close(&s->heard);
  if (s->alarm.fd >= 0)
    alarm_fini(&s->alarm);
  return is_closed;
}

static struct merge_service only = { .alarm.fd = -1 };

const struct role merge_role = {
  .service = &only,
  .alarm = &only.alarm,
  .readiness = &only.readiness,
  .stop_note = "queries that wait for parts are left to other merges",
  .open = open_all,
  .step = step,
  .print_line = print_line,
  .close = close_all,
};
