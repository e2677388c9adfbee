/* SPDX-License-Identifier: Apache-2.0 */
/* The seen thread: open, loop, and what it does after errors that it can wait out. */
#include "daemon/seen/seen.h"

#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/health/pulse.h"
#include "daemon/seen/seen_batch.h"
#include "daemon/seen/seen_topic.h"
#include "daemon/seen/user_stamps.h"
#include "daemon/topic/letter_window.h"
#include "ingest/kafka/kafka_trouble.h"

/* A batch ends when no record is there, or with the poll that reaches this many records or bytes. A poll takes few: the
 * largest records take some MB each. */
enum { BATCH_RECORDS = 4096, BATCH_BYTES = 64 << 20, POLL_RECORDS = 32, POLL_MS = 50 };

/* Chunks that one sweep looks at, the time between two sweeps, and between two rounds. */
enum { SWEEP_CHUNKS = 4096, SWEEP_EVERY_MS = 1000, ROUND_EVERY_MS = 600000 };

enum { RETRY_MS = 500, REFUSED_MS = 2000, REPORT_EVERY_MS = 250 };

struct seen {
  struct seen_context with;
  struct seen_store *store;
  struct seen_topic topic;
  struct seen_batch batch;
  struct letter_window letters;
  struct topic_record *records; /* [POLL_RECORDS] */
  struct region scratch;        /* positions of one batch */
  struct seen_progress progress;
  struct user_stamps stamps;
  int64_t sweep_due_ns;
  int64_t report_due_ns;
  int64_t refresh_due_ns; /* next look for added partitions */
  err_code_t last_err;    /* logged already; ERR_OK once reading has gone on */
  bool has_read_all;      /* the topic was read to where it ended at the start */
  bool has_swept;         /* the newest sweep did not fail */
  bool is_replaced;       /* it is another topic, which is logged, and the store has positions of the former one */
  struct pulse pulse;
  _Atomic bool is_stopping;
  pthread_t thread;
  bool has_thread;
};

/* ---- Reading a batch ---- */

/* Send a dead letter. Until it is delivered, the stored position stays before its record. */
static void send_letter(struct seen *s, const struct topic_record *record, err_code_t err)
{
  if (!letter_window_send(&s->letters, s->with.delivery, s->with.config->catalogue.dead_letter_topic, record,
                          s->topic.followed.name, err))
    counters_add(&s->with.counters->dead_letters_lost, 1);
}

static err_t add_record(struct seen *s, const struct topic_record *record)
{
  bool is_new;

  TRY(followed_topic_take(&s->topic.followed, record, &is_new));
  if (!is_new)
    return ERR_OK;
  counters_add(&s->with.counters->seen_records, 1);
  err_code_t err = seen_batch_add(&s->batch, record);
  if (err_class(err) != ERR_CLASS_REJECT)
    return err;
  send_letter(s, record, err);
  return ERR_OK;
}

/* Poll once, and add the records to the batch. An event after records is handled once they are stored.
 *
 * n  number of records
 */
static err_t poll_records(struct seen *s, int timeout_ms, size_t *n, struct topic_events *events)
{
  topic_reader_poll(s->topic.followed.reader, POLL_RECORDS, timeout_ms, s->records, n, events);
  for (size_t i = 0; i < *n; i++)
    TRY(add_record(s, &s->records[i]));
  return ERR_OK;
}

static bool has_event(const struct topic_events *events)
{
  return events->is_denied || events->is_away || events->is_out_of_range || events->is_damaged;
}

static err_t gather(struct seen *s, struct topic_events *events)
{
  size_t n, n_total = 0;

  do {
    pulse_beat();
    TRY(poll_records(s, n_total ? 0 : POLL_MS, &n, events));
    n_total += n;
  } while (n > 0 && n_total < BATCH_RECORDS && seen_batch_bytes(&s->batch) < BATCH_BYTES && !has_event(events));
  return ERR_OK;
}

/* ---- Storing it ---- */

/* List the positions to be stored: not beyond the oldest dead letter of the partition that is not delivered yet. */
static err_t list_positions(struct seen *s, struct store_position **out, size_t *n)
{
  region_reset(&s->scratch);
  TRY(region_array(&s->scratch, s->topic.followed.positions.n, sizeof **out, out));
  *n = topic_positions_list_changed(&s->topic.followed.positions, *out);
  for (size_t i = 0; i < *n; i++) {
    const struct store_position *hold = letter_window_hold(&s->letters, (*out)[i].at.partition);
    if (hold)
      store_position_hold_back(&(*out)[i], hold);
  }
  return ERR_OK;
}

static void write_partition(struct seen *s, size_t i)
{
  const struct topic_position *at = &s->topic.followed.positions.items[i];
  struct seen_partition *p = &s->progress.partitions[i];

  p->is_read_on |= at->has_read_end || at->position.at.next > p->next;
  if (at->position.at.next > p->next) /* it may have resumed below, where an open dead letter holds the store back */
    p->next = at->position.at.next;
  p->end = topic_reader_log_end(s->topic.followed.reader, (int32_t)i);
}

/* A problem is over when every partition was read on, not when the topic is connected: a full disk or a damaged
 * partition shows itself only afterwards, each time. */
static void note_reading(struct seen *s)
{
  for (size_t i = 0; i < s->progress.n; i++) {
    if (!s->progress.partitions[i].is_read_on)
      return;
  }
  if (!s->has_swept)
    return;
  s->last_err = ERR_OK;
  s->is_replaced = false; /* the former topic may be back */
  s->topic.is_quiet = false;
  *s->progress.problem = '\0';
}

static err_t write_progress(struct seen *s)
{
  const struct topic_positions *positions = &s->topic.followed.positions;

  TRY(seen_progress_resize(&s->progress, positions->n));
  for (size_t i = 0; i < positions->n; i++)
    write_partition(s, i);
  note_reading(s);
  if (!atomic_load(&s->progress.has_caught_up) && topic_positions_have_caught_up(positions)) {
    log_info("seen_caught_up", "partitions=%zu", positions->n);
    s->has_read_all = true;
    atomic_store(&s->progress.has_caught_up, true);
  }
  return ERR_OK;
}

static err_t publish_progress(struct seen *s)
{
  seen_progress_lock(&s->progress);
  err_code_t err = write_progress(s);
  seen_progress_note_change(&s->progress);
  seen_progress_unlock(&s->progress);
  s->report_due_ns = clock_now_ns() + REPORT_EVERY_MS * CLOCK_NS_PER_MS;
  return err;
}

/* Store the changes of the batch. What the users have seen may have changed after an error too. */
static err_t apply_batch(struct seen *s, const struct store_position *positions, size_t n)
{
  err_code_t err = seen_store_apply(s->store, s->batch.changes, s->batch.n, positions, n);

  for (size_t i = 0; i < s->batch.n; i++)
    user_stamps_touch(&s->stamps, s->batch.changes[i].user);
  return err;
}

static err_t store_batch(struct seen *s)
{
  struct store_position *positions;
  size_t n;

  if (letter_window_settle(&s->letters))
    topic_positions_touch(&s->topic.followed.positions);
  TRY(list_positions(s, &positions, &n));
  if (n > 0 || s->batch.n > 0)
    TRY(apply_batch(s, positions, n));
  seen_batch_reset(&s->batch);
  topic_reader_release_all(s->topic.followed.reader);
  return n > 0 || clock_now_ns() >= s->report_due_ns ? publish_progress(s) : ERR_OK;
}

/* ---- The loop ---- */

static err_t sweep(struct seen *s)
{
  bool is_round_done;

  if (clock_now_ns() < s->sweep_due_ns)
    return ERR_OK;
  s->sweep_due_ns = clock_now_ns() + SWEEP_EVERY_MS * CLOCK_NS_PER_MS;
  s->has_swept = false;
  TRY(seen_store_sweep(s->store, SWEEP_CHUNKS, &is_round_done));
  s->has_swept = true;
  s->sweep_due_ns = clock_now_ns() + (is_round_done ? ROUND_EVERY_MS : SWEEP_EVERY_MS) * CLOCK_NS_PER_MS;
  return ERR_OK;
}

static void plan_refresh(struct seen *s)
{
  s->refresh_due_ns = clock_now_ns() + (int64_t)s->with.config->catalogue.partitions_refresh_ms * CLOCK_NS_PER_MS;
}

static err_t look_for_partitions(struct seen *s)
{
  if (clock_now_ns() < s->refresh_due_ns)
    return ERR_OK;
  plan_refresh(s);
  return seen_topic_add_new_partitions(&s->topic);
}

static err_t step(struct seen *s)
{
  struct topic_events events;

  TRY(gather(s, &events));
  TRY(store_batch(s));
  TRY(topic_events_verify(&events, s->topic.followed.name));
  TRY(sweep(s));
  return look_for_partitions(s);
}

/* Where an open dead letter held the stored position back, records are applied again: an old tombstone forgets items
 * that came after it. Until the partitions are again where they were, queries wait. No further than that: the rest of a
 * partition may be unreadable. */
static void resume_progress(struct seen *s)
{
  bool is_behind = false;

  seen_progress_lock(&s->progress);
  for (size_t i = 0; i < s->progress.n && i < s->topic.followed.positions.n; i++) {
    struct topic_position *at = &s->topic.followed.positions.items[i];
    struct seen_partition *p = &s->progress.partitions[i];
    p->is_read_on = false;
    is_behind |= at->position.at.next < p->next;
    if (s->has_read_all && p->next < at->end_at_start)
      at->end_at_start = p->next;
  }
  seen_progress_unlock(&s->progress);
  if (is_behind)
    seen_progress_set_caught_up(&s->progress, false);
}

static err_t connect(struct seen *s)
{
  letter_window_forget(&s->letters);
  TRY(seen_topic_resume(&s->topic));
  resume_progress(s);
  plan_refresh(s);
  return ERR_OK;
}

/* The topic does not continue the store: read it from its first record. What users have seen stays. */
static err_t begin_anew(struct seen *s)
{
  if (!s->is_replaced) { /* on a full disk this is tried again and again */
    log_error("seen_discontinuity", "topic=%s reason=%s note=\"what users have seen is kept; the topic is read again\"",
              s->topic.followed.name, log_failure());
    counters_add(&s->with.counters->discontinuities, 1);
  }
  s->is_replaced = true;
  seen_progress_forget(&s->progress);
  s->has_read_all = false;
  TRY(seen_store_forget_positions(s->store));
  s->is_replaced = false;
  s->topic.is_quiet = false;
  return ERR_OK;
}

static void wait_and_say(struct seen *s, err_code_t err)
{
  seen_progress_set_problem(&s->progress, err_message());
  s->topic.is_quiet = err == s->last_err;
  if (!s->topic.is_quiet)
    log_warn("seen_waiting", "topic=%s reason=%s", s->topic.followed.name, log_failure());
  s->last_err = err;
  clock_sleep_ns((kafka_trouble_newest() ? REFUSED_MS : RETRY_MS) * CLOCK_NS_PER_MS);
}

/* Forget the batch, and read again from where the store stands. */
static err_t recover(struct seen *s, err_code_t err)
{
  pulse_beat();
  seen_batch_reset(&s->batch);
  if (err == ERR_DISCONTINUITY)
    err = begin_anew(s);
  if (err_class(err) == ERR_CLASS_RETRY)
    wait_and_say(s, err);
  else
    TRY(err);
  TRY(followed_topic_reopen(&s->topic.followed));
  return connect(s);
}

/* If the certificates have changed, let another consumer take over where the store stands. */
static err_t renew(struct seen *s)
{
  struct topic_reader *next;

  TRY(followed_topic_renew(&s->topic.followed, &next));
  if (!next)
    return ERR_OK;
  followed_topic_take_over(&s->topic.followed, &next);
  return connect(s);
}

static err_t follow(struct seen *s)
{
  err_code_t err = connect(s);

  while (!atomic_load(&s->is_stopping)) {
    if (err == ERR_OK)
      err = renew(s);
    if (err == ERR_OK)
      err = step(s);
    else if (err == ERR_DISCONTINUITY || err_class(err) == ERR_CLASS_RETRY)
      err = recover(s, err);
    else
      return err;
  }
  return ERR_OK;
}

static void *run(void *context)
{
  struct seen *s = context;

  pulse_begin(&s->with.alarm->pulses, &s->pulse, "seen");
  err_code_t err = follow(s);
  pulse_rest();
  if (err != ERR_OK && !atomic_load(&s->is_stopping))
    alarm_raise(s->with.alarm, "seen", err);
  return NULL;
}

/* ---- Opening and closing ---- */

static err_t open_store(struct seen *s)
{
  const struct config *config = s->with.config;
  struct seen_store_limits limits = { config->seen.max_per_user, (int64_t)config->seen.ttl_s * 1000 };
  char path[PATH_MAX];

  if ((size_t)snprintf(path, sizeof path, "%s/seen", config->store_path) >= sizeof path)
    FAIL(ERR_CONFIG, "store.path is too long");
  return seen_store_open(path, &limits, &s->store);
}

err_t seen_open(const struct seen_context *context, struct seen **out)
{
  AUTO(seen_close) struct seen *s = NULL;
  struct kafka_layers layers = kafka_setup_reader_layers(context->kafka, &context->config->seen.kafka, "seen");

  TRY(mem_array(1, sizeof *s, &s));
  s->with = *context;
  seen_progress_init(&s->progress);
  TRY(letter_window_init(&s->letters));
  TRY(mem_array(POLL_RECORDS, sizeof *s->records, &s->records));
  TRY(open_store(s));
  TRY(seen_topic_init(&layers, context->config->seen.topic, (int64_t)context->config->seen.ttl_s * 1000, s->store,
                      &s->topic));
  if (pthread_create(&s->thread, NULL, run, s) != 0)
    FAIL(ERR_SYSTEM, "the seen thread cannot be started");
  s->has_thread = true;
  *out = s;
  s = NULL;
  return ERR_OK;
}

void seen_ask_to_stop(struct seen *s)
{
  atomic_store(&s->is_stopping, true);
}

void seen_stop(struct seen *s)
{
  seen_ask_to_stop(s);
  if (s->has_thread)
    pthread_join(s->thread, NULL);
  s->has_thread = false;
}

void seen_close(struct seen **s)
{
  if (!*s)
    return;
  seen_stop(*s);
  seen_topic_fini(&(*s)->topic);
  seen_batch_fini(&(*s)->batch);
  letter_window_fini(&(*s)->letters);
  seen_store_close(&(*s)->store);
  seen_progress_fini(&(*s)->progress);
  region_fini(&(*s)->scratch);
  mem_free(&(*s)->records);
  mem_free(s);
}

err_t seen_read(struct seen *s, struct span user, uint64_t first_chunk, struct region *region, struct seen_keys *out)
{
  return seen_store_read(s->store, user, first_chunk, region, out);
}

uint64_t seen_stamp(const struct seen *s, struct span user)
{
  return user_stamps_get(&s->stamps, user);
}

bool seen_is_expired(const struct seen *s, int64_t time_unix_ms)
{
  return seen_store_is_expired(s->store, time_unix_ms);
}

struct seen_progress *seen_progress_of(struct seen *s)
{
  return &s->progress;
}

void seen_stats(const struct seen *s, struct seen_store_stats *out)
{
  seen_store_stats(s->store, out);
}
