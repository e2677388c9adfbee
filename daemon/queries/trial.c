/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the one trial, and the handover of its answer from a search worker to the thread that asked. */
#include "daemon/queries/trial.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"
#include "daemon/queries/query_queue.h"

/* A trial that was given up is searched or about to be: the next one waits for that. */
enum state { STATE_RESTS, STATE_IS_ASKED, STATE_IS_ANSWERED, STATE_IS_GIVEN_UP };

struct trial {
  struct trial_context with;
  int fd; /* an eventfd */
  pthread_mutex_t mutex;
  bool has_workers;
  enum state state;
  char *answer;          /* in STATE_IS_ANSWERED */
  int64_t rest_until_ns; /* the next trial begins no earlier */
};

err_t trial_open(const struct trial_context *context, struct trial **out)
{
  AUTO(trial_close) struct trial *t = NULL;

  TRY(mem_array(1, sizeof *t, &t));
  t->with = *context;
  pthread_mutex_init(&t->mutex, NULL);
  t->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (t->fd < 0)
    FAIL(ERR_SYSTEM, "eventfd: %s", strerror(errno));
  *out = t;
  t = NULL;
  return ERR_OK;
}

void trial_close(struct trial **t)
{
  if (!*t)
    return;
  if ((*t)->fd >= 0)
    close((*t)->fd);
  pthread_mutex_destroy(&(*t)->mutex);
  free((*t)->answer);
  mem_free(t);
}

void trial_allow(struct trial *t, bool has_workers)
{
  pthread_mutex_lock(&t->mutex);
  t->has_workers = has_workers;
  pthread_mutex_unlock(&t->mutex);
}

int trial_fd(const struct trial *t)
{
  return t->fd;
}

/* ---- Asking ---- */

static enum trial_begin must_wait(struct trial *t, char *message, const char *reason)
{
  counters_add(&t->with.counters->tries_refused, 1);
  snprintf(message, TRIAL_MESSAGE_BYTES, "%s", reason);
  return TRIAL_MUST_WAIT;
}

/* Make it our turn, unless there is a reason to wait. */
static enum trial_begin take_turn(struct trial *t, char *message)
{
  char rest[80];

  pthread_mutex_lock(&t->mutex);
  int64_t rest_ns = t->rest_until_ns - clock_now_ns();
  bool is_busy = t->state != STATE_RESTS, can_begin = t->has_workers && !is_busy && rest_ns <= 0;
  if (can_begin)
    t->state = STATE_IS_ASKED;
  bool has_workers = t->has_workers;
  pthread_mutex_unlock(&t->mutex);
  if (can_begin)
    return TRIAL_HAS_BEGUN;
  if (!has_workers)
    return must_wait(t, message, "the daemon does not search now: see its state");
  if (is_busy)
    return must_wait(t, message, "another query is being tried: try again in a moment");
  snprintf(rest, sizeof rest, "the last search was long: try again in %" PRId64 " s", rest_ns / CLOCK_NS_PER_S + 1);
  return must_wait(t, message, rest);
}

static void end_turn(struct trial *t)
{
  pthread_mutex_lock(&t->mutex);
  t->state = STATE_RESTS;
  pthread_mutex_unlock(&t->mutex);
}

static err_t name_attributes(const struct attributes *all, struct region *region, struct query *query)
{
  query->n_attributes = size_min(all->n, TRIAL_ATTRIBUTES_MAX);
  TRY(region_array(region, query->n_attributes, sizeof *query->attributes, &query->attributes));
  for (size_t i = 0; i < query->n_attributes; i++)
    query->attributes[i] = all->v[i].name;
  return ERR_OK;
}

static err_t like_key(struct region *region, struct span key, struct query *query)
{
  TRY(region_array(region, 1, sizeof *query->likes, &query->likes));
  query->likes[0].weight = 1;
  query->n_likes = 1;
  return region_copy(region, key, &query->likes[0].key);
}

/* Fill in a query of the pool as if it came from Kafka, and check it. */
static err_t fill(struct trial *t, const struct trial_query *from, struct pending_query *query)
{
  query->query = (struct query){ .k = from->k };
  query->trial = t;
  query->has_key = false;
  query->key = (struct span){ 0 };
  query->trace = (struct trace_headers){ 0 };
  query->format = WIRE_JSON;
  query->received_ns = clock_now_ns();
  query->asked_ns = 0;
  query->deadline_ns = PENDING_NO_DEADLINE; /* trial_give_up() is earlier */
  TRY(like_key(&query->region, from->key, &query->query));
  TRY(region_copy(&query->region, from->space, &query->query.space));
  TRY(name_attributes(&t->with.config->attributes, &query->region, &query->query));
  query_queue_weigh(t->with.queue, query);
  if (from->k < 1 || from->k > TRIAL_K_MAX)
    FAIL(ERR_QUERY, "k: expects 1 to %d", TRIAL_K_MAX);
  TRY(engine_check_query(t->with.engine, &query->query, &query->number, &query->method));
  query->space = config_find_space(t->with.config, query->query.space);
  return ERR_OK;
}

static enum trial_begin push(struct trial *t, const struct trial_query *from, struct pending_query *query,
                             char *message)
{
  if (fill(t, from, query) != ERR_OK) {
    snprintf(message, TRIAL_MESSAGE_BYTES, "%s", err_message());
    query_queue_free_query(t->with.queue, query);
    return TRIAL_IS_BAD;
  }
  if (query_queue_estimate_ns(t->with.queue, query) > TRIAL_WAIT_S * CLOCK_NS_PER_S) {
    query_queue_free_query(t->with.queue, query);
    return must_wait(t, message, "the answer would take too long: searches are long, or many queries wait");
  }
  query_queue_push(t->with.queue, query);
  return TRIAL_HAS_BEGUN;
}

enum trial_begin trial_begin(struct trial *t, const struct trial_query *query, char *message)
{
  enum trial_begin begin = take_turn(t, message);

  if (begin != TRIAL_HAS_BEGUN)
    return begin;
  struct pending_query *pending = query_queue_take_query(t->with.queue);
  begin = pending ? push(t, query, pending, message) : must_wait(t, message, "too many queries wait: try again later");
  if (begin != TRIAL_HAS_BEGUN)
    end_turn(t);
  return begin;
}

/* ---- The end ---- */

bool trial_take(struct trial *t, char **answer)
{
  eventfd_t n;

  pthread_mutex_lock(&t->mutex);
  bool is_answered = t->state == STATE_IS_ANSWERED;
  if (is_answered) {
    eventfd_read(t->fd, &n);
    *answer = t->answer;
    t->answer = NULL;
    t->state = STATE_RESTS;
  }
  pthread_mutex_unlock(&t->mutex);
  return is_answered;
}

bool trial_give_up(struct trial *t)
{
  bool has_begun = !query_queue_withdraw_trial(t->with.queue);
  char *answer = NULL;

  counters_add(&t->with.counters->tries_refused, 1);
  if (trial_take(t, &answer)) { /* it has come in this moment */
    free(answer);
    return true;
  }
  pthread_mutex_lock(&t->mutex);
  if (t->state == STATE_IS_ASKED)
    t->state = has_begun ? STATE_IS_GIVEN_UP : STATE_RESTS;
  pthread_mutex_unlock(&t->mutex);
  return has_begun;
}

static char *encode(const struct answer *answer, struct region *scratch)
{
  struct span text;

  region_reset(scratch);
  return wire_encode_answer(answer, WIRE_JSON, scratch, &text) == ERR_OK ? strndup((const char *)text.p, text.n) : NULL;
}

void trial_answer(struct trial *t, const struct answer *answer, struct region *scratch)
{
  char *text = encode(answer, scratch);

  counters_add(&t->with.counters->tried, 1);
  pthread_mutex_lock(&t->mutex);
  t->rest_until_ns = clock_now_ns() + (int64_t)answer->searched_us * CLOCK_NS_PER_US * TRIAL_RESTS;
  if (t->state == STATE_IS_ASKED) {
    t->answer = text;
    t->state = STATE_IS_ANSWERED;
    eventfd_write(t->fd, 1);
    text = NULL;
  } else {
    t->state = STATE_RESTS;
  }
  pthread_mutex_unlock(&t->mutex);
  free(text);
}
