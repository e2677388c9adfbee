/* SPDX-License-Identifier: Apache-2.0 */
/* Send at a rate in one thread, and take answers in another. */
#include "daemon/ctl/bench/ctl_bench_run.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_asking.h"
#include "daemon/ctl/ctl_interrupt.h"
#include "daemon/ctl/ctl_pace.h"
#include "daemon/ctl/text/ctl_progress.h"
#include "ingest/kafka/sender.h"
#include "ingest/readers/topic_scan.h"
#include "ingest/wire/wire.h"
#include "ingest/wire/wire_client.h"

enum { ID_BYTES = 64, NAP_MS = 20, FIRST_WAIT_MS = 10000, LAST_WAIT_MS = 1000, READ_MS = 100, LEAD_MS = 50 };

/* The samples, the counts of answers and the message are the reader's until it has ended. */
struct bench {
  const struct ctl_bench_pool *pool;
  const struct ctl_bench_plan *plan;
  struct ctl_bench_result result;
  char series[ID_BYTES]; /* the beginning of all ids */
  const char *topic;
  struct sender *sender;
  struct topic_scan *answers;
  struct ctl_progress progress;
  pthread_t thread;
  bool has_thread;
  atomic_int_fast64_t begin_ns; /* when the first query is due; set before it is sent */
  atomic_bool is_over;          /* the reader ends */
  atomic_uint_fast64_t n_done;  /* queries that have an answer */
  atomic_bool has_first;        /* the query before all others has one */
  atomic_int failure;           /* of the reader: an err_code_t */
  struct err_kept why;          /* once failure is set */
  uint64_t n_undelivered;
  char refusal[256]; /* why Kafka did not take a query */
  uint8_t *buffer;
  size_t capacity;
};

static int64_t due_ns_of(struct bench *b, uint64_t i)
{
  const struct ctl_pace pace = { atomic_load(&b->begin_ns), b->plan->per_s };

  return ctl_pace_due_ns(&pace, i);
}

/* ---- The thread that takes answers ---- */

/* Return the number of the query that has this id; n for the one before all others; UINT64_MAX for none of ours. */
static uint64_t number_of(const struct bench *b, struct span id)
{
  size_t n_series = strlen(b->series);
  char digits[24];

  if (id.n <= n_series || id.n - n_series >= sizeof digits || memcmp(id.p, b->series, n_series) != 0)
    return UINT64_MAX;
  memcpy(digits, id.p + n_series, id.n - n_series);
  digits[id.n - n_series] = '\0';
  return strtoull(digits, NULL, 10);
}

static void count_error(struct bench *b, const struct wire_reply *reply)
{
  struct ctl_bench_result *r = &b->result;

  if (!*r->message)
    snprintf(r->message, sizeof r->message, "%s: %s", wire_error_name(reply->error), reply->message);
  r->n_errors[reply->error < CTL_BENCH_ERRORS - 1 ? (int)reply->error : CTL_BENCH_ERRORS - 1]++;
}

static void take_reply(struct bench *b, const struct wire_reply *reply, int64_t now_ns)
{
  uint64_t i = number_of(b, reply->id);

  if (i == b->plan->n)
    atomic_store(&b->has_first, true);
  if (i >= b->plan->n)
    return;
  struct ctl_bench_sample *sample = &b->result.samples[i];
  if (sample->fate != CTL_BENCH_OPEN) {
    b->result.n_twice++;
    return;
  }
  *sample = (struct ctl_bench_sample){
    .latency_ns = now_ns - due_ns_of(b, i),
    .queued_us = reply->queued_us,
    .searched_us = reply->searched_us,
    .fate = reply->error == ANSWER_OK ? CTL_BENCH_ANSWERED : CTL_BENCH_FAILED,
  };
  if (reply->error != ANSWER_OK)
    count_error(b, reply);
  atomic_fetch_add(&b->n_done, 1);
}

/* Others' answers may be JSON; what is neither may be the answer to a query of ours. */
static void count_unreadable(struct bench *b, struct span value)
{
  struct ctl_bench_result *r = &b->result;

  if (wire_format_of(value, (struct span){ 0 }) == WIRE_JSON)
    return;
  if (!*r->message)
    snprintf(r->message, sizeof r->message, "%s", err_message());
  r->n_unreadable++;
}

static err_t take_answers(struct bench *b, struct region *region)
{
  struct topic_scan_record record;
  enum topic_scan_found found;
  struct wire_reply reply;

  while (!atomic_load(&b->is_over)) {
    TRY(topic_scan_next(b->answers, READ_MS, &record, &found));
    int64_t now_ns = clock_now_ns();
    region_reset(region);
    if (found != TOPIC_SCAN_RECORD)
      continue;
    if (wire_decode_reply(record.value, region, &reply) == ERR_OK)
      take_reply(b, &reply, now_ns);
    else
      count_unreadable(b, record.value);
  }
  return ERR_OK;
}

static int64_t thread_ns(void)
{
  struct timespec t;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * CLOCK_NS_PER_S + t.tv_nsec;
}

static void *run_reader(void *argument)
{
  struct bench *b = argument;
  struct region region = { 0 };
  int64_t began_ns = clock_now_ns();

  err_code_t result = take_answers(b, &region);
  if (result != ERR_OK)
    err_keep(result, &b->why);
  atomic_store(&b->failure, (int)result);
  b->result.reader_share = (double)thread_ns() / (double)(clock_now_ns() - began_ns + 1);
  region_fini(&region);
  return NULL;
}

/* ---- The thread that sends ---- */

static void on_report(void *context, const struct sender_report *report)
{
  struct bench *b = context;

  if (report->fate == SENDER_DELIVERED)
    return;
  if (b->n_undelivered++ == 0)
    snprintf(b->refusal, sizeof b->refusal, "%s", report->reason);
}

static err_t send_query(struct bench *b, uint64_t i)
{
  const struct sender_header header = { "content-type", span_of_str(wire_content_type(WIRE_PROTOBUF)) };
  struct sender_message message = {
    .topic = b->topic, .has_key = true, .has_value = true, .headers = &header, .n_headers = 1
  };
  char id[2 * ID_BYTES];
  err_code_t result;

  snprintf(id, sizeof id, "%s%" PRIu64, b->series, i);
  message.key = span_of_str(id);
  TRY(ctl_bench_pool_name(b->pool, i, id, &b->buffer, &b->capacity, &message.value));
  while ((result = sender_send(b->sender, &message)) == ERR_KAFKA_RETRY && !ctl_interrupt_came())
    sender_poll(b->sender, NAP_MS);
  return result;
}

static bool is_reading(struct bench *b)
{
  return atomic_load(&b->failure) == ERR_OK;
}

/* Sleep until a time, or for less if Ctrl-C comes or the reader fails. */
static void sleep_until(struct bench *b, int64_t until_ns)
{
  for (;;) {
    int64_t left_ns = until_ns - clock_now_ns();
    if (left_ns <= 0 || ctl_interrupt_came() || !is_reading(b))
      return;
    clock_sleep_ns(left_ns < NAP_MS * CLOCK_NS_PER_MS ? left_ns : NAP_MS * CLOCK_NS_PER_MS);
    sender_poll(b->sender, 0);
  }
}

static void note_sent(struct bench *b, int64_t late_ns)
{
  b->result.n_sent++;
  b->result.n_late += late_ns > CTL_BENCH_LATE_NS;
  if (late_ns > b->result.latest_ns)
    b->result.latest_ns = late_ns;
}

static err_t send_all(struct bench *b)
{
  ctl_progress_begin(&b->progress, "sending", b->plan->n);
  b->progress.unit = "queries";
  for (uint64_t i = 0; i < b->plan->n && is_reading(b); i++) {
    int64_t due_ns = due_ns_of(b, i);
    sleep_until(b, due_ns);
    if (ctl_interrupt_came())
      break;
    int64_t now_ns = clock_now_ns();
    err_code_t sent = send_query(b, i);
    if (sent == ERR_KAFKA_RETRY) /* Ctrl-C came while the queue was full */
      break;
    TRY(sent);
    note_sent(b, now_ns - due_ns);
    sender_poll(b->sender, 0);
    ctl_progress_tick(&b->progress, i + 1, i + 1);
  }
  ctl_progress_hide(&b->progress);
  b->result.took_ns = clock_now_ns() - due_ns_of(b, 0);
  b->result.is_interrupted = ctl_interrupt_came();
  return ERR_OK;
}

/* Send one query before all others, and wait for its answer. */
static err_t send_first(struct bench *b)
{
  int64_t wait_ms = b->plan->timeout_ms > FIRST_WAIT_MS ? b->plan->timeout_ms : FIRST_WAIT_MS;
  int64_t until_ns = clock_now_ns() + wait_ms * CLOCK_NS_PER_MS;

  TRY(send_query(b, b->plan->n));
  while (!atomic_load(&b->has_first) && is_reading(b) && !ctl_interrupt_came() && clock_now_ns() < until_ns)
    sender_poll(b->sender, 1);
  if (b->n_undelivered)
    FAIL(ERR_KAFKA, "the first query did not reach Kafka: %s", b->refusal);
  if (!atomic_load(&b->has_first) && is_reading(b) && !ctl_interrupt_came())
    FAIL(ERR_QUERY,
         "the first query was not answered within %" PRId64 " ms: is the daemon running? See sluicectl status",
         wait_ms);
  return ERR_OK;
}

static void await_answers(struct bench *b)
{
  int64_t wait_ms = b->result.is_interrupted && b->plan->timeout_ms > LAST_WAIT_MS ? LAST_WAIT_MS : b->plan->timeout_ms;
  int64_t until_ns = clock_now_ns() + wait_ms * CLOCK_NS_PER_MS;

  while (atomic_load(&b->n_done) + b->n_undelivered < b->result.n_sent && is_reading(b) && clock_now_ns() < until_ns)
    sender_poll(b->sender, NAP_MS);
}

/* ---- Both ---- */

static err_t start_reader(struct bench *b)
{
  if (pthread_create(&b->thread, NULL, run_reader, b) != 0)
    FAIL(ERR_SYSTEM, "no thread can be made");
  b->has_thread = true;
  return ERR_OK;
}

static void stop_reader(struct bench *b)
{
  atomic_store(&b->is_over, true);
  if (b->has_thread)
    pthread_join(b->thread, NULL);
  b->has_thread = false;
}

static void ctl_bench_fini(struct bench *b)
{
  ctl_progress_hide(&b->progress);
  stop_reader(b);
  topic_scan_close(&b->answers);
  sender_close(&b->sender);
  mem_free(&b->buffer);
  ctl_bench_result_fini(&b->result);
}

static err_t run_load(struct bench *b)
{
  TRY(send_first(b));
  atomic_store(&b->begin_ns, clock_now_ns() + LEAD_MS * CLOCK_NS_PER_MS);
  TRY(send_all(b));
  await_answers(b);
  return ERR_OK;
}

err_t ctl_bench_run(struct ctl_context *ctx, const struct ctl_bench_pool *pool, const struct ctl_bench_plan *plan,
                    struct ctl_bench_result *out)
{
  AUTO(ctl_bench_fini) struct bench b = { .pool = pool, .plan = plan, .topic = ctx->config->query.topic };

  snprintf(b.series, sizeof b.series, "bench-%" PRIx64 "-", ctl_asking_series());
  TRY(mem_array(plan->n, sizeof *b.result.samples, &b.result.samples));
  TRY(ctl_asking_open(ctx, on_report, &b, &b.answers, &b.sender));
  TRY(start_reader(&b));
  TRY(run_load(&b));
  stop_reader(&b);
  TRY(err_give_back(&b.why));
  if (!*b.result.message)
    snprintf(b.result.message, sizeof b.result.message, "%s", b.refusal);
  b.result.n_undelivered = b.n_undelivered;
  *out = b.result;
  b.result = (struct ctl_bench_result){ 0 };
  return ERR_OK;
}

void ctl_bench_result_fini(struct ctl_bench_result *r)
{
  mem_free(&r->samples);
}
