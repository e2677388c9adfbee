/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes canaries and waits for them. */
#include "daemon/canary/canary.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/health/pulse.h"
#include "ingest/kafka/renewal_wait.h"
#include "ingest/kafka/sender.h"

enum { STEP_MS_MAX = 100, TAKE_BACK_MS = 1000 };

/* What the canary does next. */
enum phase { PHASE_RESTS, PHASE_IS_SENT, PHASE_IS_IN_TOPIC };

struct canary {
  struct canary_context with;
  struct kafka_layers layers;
  struct sender *sender;
  struct renewal_wait renewal;
  enum phase phase;
  int64_t due_ns;
  int64_t written_ns;
  struct position position; /* behind the record, in PHASE_IS_IN_TOPIC */
  struct pulse pulse;
  _Atomic bool is_stopping;
  bool has_thread;
  pthread_t thread;
};

static void warn_of_refusal(const struct canary *c, const char *reason)
{
  log_warn("canary_not_written", "topic=%s reason=%s", c->with.config->catalogue.topic, log_quote(span_of_str(reason)));
}

static void on_report(void *context, const struct sender_report *report)
{
  struct canary *c = context;

  if (c->phase != PHASE_IS_SENT)
    return;
  if (report->fate == SENDER_DELIVERED) {
    c->position = (struct position){ report->partition, report->offset + 1 };
    c->phase = PHASE_IS_IN_TOPIC;
    return;
  }
  c->phase = PHASE_RESTS;
  if (report->fate != SENDER_CLOSED)
    warn_of_refusal(c, report->reason);
}

static void write_one(struct canary *c, int64_t now_ns)
{
  struct sender_message tombstone = {
    .topic = c->with.config->catalogue.topic,
    .has_key = true,
    .key = span_of_str(CANARY_KEY),
  };
  const char *reason;

  c->written_ns = now_ns;
  c->due_ns = now_ns + (int64_t)c->with.config->canary.interval_ms * CLOCK_NS_PER_MS;
  if (sender_try(c->sender, &tombstone, &reason) == SENDER_QUEUED)
    c->phase = PHASE_IS_SENT;
  else
    warn_of_refusal(c, reason);
}

static void note_visible(struct canary *c, int64_t now_ns)
{
  hist_add(&c->with.counters->canary_us, (uint64_t)(now_ns - c->written_ns) / CLOCK_NS_PER_US);
  atomic_store(&c->with.counters->canary_written_ns, c->written_ns);
  c->phase = PHASE_RESTS;
}

/* A canary on its way may need the new certificates: no broker lets the producer in any more. Take it back, unless a
 * broker was sent it. Its report ends the wait. */
static void take_back(struct canary *c, int64_t now_ns)
{
  if (sender_is_outdated(c->sender) && now_ns - c->written_ns > TAKE_BACK_MS * CLOCK_NS_PER_MS)
    sender_take_back(c->sender);
}

/* Take up new certificates. Nothing is lost: no record is on its way. */
static void renew(struct canary *c)
{
  struct sender *next;

  if (!sender_is_outdated(c->sender) || !renewal_wait_is_over(&c->renewal))
    return;
  if (sender_open(&c->layers, on_report, c, &next) != ERR_OK) {
    renewal_wait_begin(&c->renewal, "canary");
    return;
  }
  renewal_wait_end(&c->renewal);
  sender_close(&c->sender);
  c->sender = next;
  log_info("kafka_client_renewed", "client=canary");
}

static void step(struct canary *c, int64_t now_ns)
{
  bool is_in_topic = c->phase == PHASE_IS_IN_TOPIC;

  if (is_in_topic && engine_has_seen(c->with.engine, &c->position, 1))
    note_visible(c, now_ns);
  else if (is_in_topic && now_ns - c->written_ns > CANARY_GIVE_UP_S * CLOCK_NS_PER_S)
    c->phase = PHASE_RESTS;
  else if (c->phase == PHASE_IS_SENT)
    take_back(c, now_ns);
  if (c->phase != PHASE_RESTS || now_ns < c->due_ns)
    return;
  renew(c);
  write_one(c, now_ns);
}

/* How long may the thread sleep? While a canary is on its way, a tenth of the time that it has taken so far. */
static int step_ms(const struct canary *c, int64_t now_ns)
{
  int64_t wait_ns = c->phase == PHASE_RESTS ? c->due_ns - now_ns : (now_ns - c->written_ns) / 10;
  int64_t wait_ms = wait_ns / CLOCK_NS_PER_MS + 1;

  return wait_ms > STEP_MS_MAX ? STEP_MS_MAX : (int)wait_ms;
}

static void *run(void *context)
{
  struct canary *c = context;

  pulse_begin(&c->with.alarm->pulses, &c->pulse, "canary");
  while (!atomic_load(&c->is_stopping)) {
    pulse_beat();
    step(c, clock_now_ns());
    sender_poll(c->sender, step_ms(c, clock_now_ns()));
  }
  pulse_rest();
  return NULL;
}

err_t canary_open(const struct canary_context *context, struct canary **out)
{
  AUTO(canary_close) struct canary *c = NULL;

  TRY(mem_array(1, sizeof *c, &c));
  c->with = *context;
  c->layers = kafka_setup_layers(context->kafka, &context->config->query.answer_kafka, false);
  TRY(sender_open(&c->layers, on_report, c, &c->sender));
  c->due_ns = clock_now_ns();
  atomic_store(&context->counters->canary_written_ns, c->due_ns);
  if (pthread_create(&c->thread, NULL, run, c) != 0)
    FAIL(ERR_SYSTEM, "the canary thread cannot be started");
  c->has_thread = true;
  *out = c;
  c = NULL;
  return ERR_OK;
}

void canary_close(struct canary **c)
{
  if (!*c)
    return;
  atomic_store(&(*c)->is_stopping, true);
  if ((*c)->has_thread)
    pthread_join((*c)->thread, NULL);
  sender_close(&(*c)->sender);
  mem_free(c);
}
