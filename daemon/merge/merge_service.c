/* SPDX-License-Identifier: Apache-2.0 */
/* Open the parts of the role merge in order, and close them in reverse order. */
#include "daemon/merge/merge_service.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/kafka_trouble.h"

enum { CLIENTS_TIMEOUT_S = 5, WINDOW_S = 60 };

err_t merge_service_open(const struct config *config, struct merge_service *s)
{
  *s = (struct merge_service){ .alarm.fd = -1 };
  s->status.config = config;
  s->status.kafka = &s->kafka;
  s->status.counters = &s->counters;
  s->status.started_ns = clock_now_ns();
  s->status.other = &s->pages;
  atomic_store(&s->status.not_ready, "starting");
  TRY(alarm_init(&s->alarm));
  TRY(kafka_setup_open(config, &s->kafka));
  TRY(shards_heard_open(&s->heard));
  s->view = (struct merge_view){
    .config = config,
    .bootstrap = kafka_setup_bootstrap(&s->kafka),
    .counters = &s->counters,
    .figures = &s->figures,
    .windows = &s->windows,
    .heard = s->heard,
    .started_ns = s->status.started_ns,
  };
  s->pages = merge_pages(&s->view);
  struct merge_thread_context context = { config, &s->kafka, &s->counters, &s->figures, s->heard, &s->alarm };
  TRY(merge_thread_open(&context, &s->thread));
  return http_open(config->http.listen, &config->http.hosts, &s->status, &s->http);
}

/* The windows begin with zeros, so the first ones are those since the start. */
static void turn_windows(struct merge_service *s)
{
  if (clock_now_ns() < s->windows_due_ns)
    return;
  if (s->windows_due_ns) {
#define MERGE_TURN(field, name, help) hist_window_turn(&s->windows.field, &s->figures.field);
    MERGE_HISTS(MERGE_TURN)
#undef MERGE_TURN
    hist_window_turn(&s->windows.answer_us, &s->counters.answer_us);
  }
  s->windows_due_ns = clock_now_ns() + WINDOW_S * CLOCK_NS_PER_S;
}

void merge_service_step(struct merge_service *s)
{
  const char *reason = merge_thread_not_ready(s->thread);
  const char *trouble = reason ? kafka_trouble_newest() : NULL;

  turn_windows(s);
  reason = trouble ? trouble : reason;
  if (reason != status_not_ready(&s->status))
    log_info("readiness", "ready=%s%s%s", reason ? "no" : "yes", reason ? " reason=" : "",
             reason ? log_quote(span_of_str(reason)) : "");
  atomic_store(&s->status.not_ready, reason);
}

void merge_service_line(const struct merge_service *s, char *text, size_t n)
{
  const char *not_ready = status_not_ready(&s->status);

  snprintf(text, n, "%s%s; merge: %" PRIu64 " queries open, %" PRIu64 " answered", not_ready ? "not ready: " : "ready",
           not_ready ? not_ready : "", atomic_load(&s->figures.open_queries), counters_get(&s->counters.answers));
}

bool merge_service_close(struct merge_service *s)
{
  atomic_store(&s->status.not_ready, "stopping");
  kafka_closing_together();
  http_close(&s->http);
  merge_thread_close(&s->thread);
  kafka_closing_wait(clock_now_ns() + CLIENTS_TIMEOUT_S * CLOCK_NS_PER_S);
  bool is_closed = kafka_closing_log_left() == 0;
  kafka_setup_close(&s->kafka);
  shards_heard_close(&s->heard);
  if (s->alarm.fd >= 0)
    alarm_fini(&s->alarm);
  return is_closed;
}
