/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the clients that are being closed, each with its thread. */
#include "ingest/kafka/kafka_closing.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

/* A healthy client closes in much less time. */
enum { LIMIT_MS = 3000 };

struct closing {
  uint64_t number; /* identifies the closing; its address may be used again */
  const char *name;
  void (*close)(void *object);
  void *object;
  int64_t begun_ns;
  pthread_t thread;
  bool has_ended;
  bool is_logged;
  struct closing *next;
};

/* One list for the process, because clients left behind belong to the process. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  struct closing *first;
  uint64_t n_begun;
  bool is_together;
} all = { .mutex = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

static void *run(void *context)
{
  struct closing *c = context;

  c->close(c->object);
  pthread_mutex_lock(&all.mutex);
  c->has_ended = true;
  pthread_cond_broadcast(&all.ended);
  pthread_mutex_unlock(&all.mutex);
  return NULL;
}

/* Free the closings that have ended, and return how many have not. The caller holds all.mutex. */
static size_t reap(void)
{
  struct closing **link = &all.first;
  size_t n = 0;

  while (*link) {
    struct closing *c = *link;
    if (c->has_ended) {
      *link = c->next;
      pthread_join(c->thread, NULL); /* the thread has nothing left to do but end */
      mem_free(&c);
    } else {
      link = &c->next;
      n++;
    }
  }
  return n;
}

static struct closing *find(uint64_t number)
{
  struct closing *c = all.first;

  while (c && c->number != number)
    c = c->next;
  return c;
}

static void wait_for_end(int64_t until_ns)
{
  struct timespec until = { .tv_sec = until_ns / CLOCK_NS_PER_S, .tv_nsec = until_ns % CLOCK_NS_PER_S };

  pthread_cond_clockwait(&all.ended, &all.mutex, CLOCK_MONOTONIC, &until);
}

static void log_left(struct closing *c)
{
  if (!c->is_logged)
    log_warn("kafka_client_left", "client=%s note=\"it cannot be closed: the process continues without it\"", c->name);
  c->is_logged = true;
}

/* Log the clients for whose end nobody waits, and that should be closed by now. The caller holds all.mutex. */
static void log_late(int64_t now_ns)
{
  for (struct closing *c = all.first; c; c = c->next) {
    if (!c->has_ended && now_ns - c->begun_ns >= LIMIT_MS * CLOCK_NS_PER_MS)
      log_left(c);
  }
}

static void await(uint64_t number)
{
  int64_t until_ns = clock_now_ns() + LIMIT_MS * CLOCK_NS_PER_MS;

  for (;;) {
    reap();
    struct closing *c = find(number);
    if (!c || all.is_together)
      return;
    if (clock_now_ns() >= until_ns) {
      log_left(c);
      return;
    }
    wait_for_end(until_ns);
  }
}

static void begin(const char *name, void (*close)(void *object), void *object, bool waits)
{
  struct closing *c;

  if (mem_array(1, sizeof *c, &c) != ERR_OK) {
    close(object);
    return;
  }
  *c = (struct closing){ .name = name, .close = close, .object = object, .begun_ns = clock_now_ns() };
  pthread_mutex_lock(&all.mutex);
  reap(); /* those for whose end nobody waits: a thread that has ended keeps its stack until it is joined */
  log_late(c->begun_ns);
  if (pthread_create(&c->thread, NULL, run, c) == 0) {
    c->number = ++all.n_begun;
    c->next = all.first;
    all.first = c;
    if (waits && !all.is_together)
      await(c->number);
    pthread_mutex_unlock(&all.mutex);
  } else {
    pthread_mutex_unlock(&all.mutex);
    mem_free(&c);
    close(object);
  }
}

void kafka_closing_run(const char *name, void (*close)(void *object), void *object)
{
  begin(name, close, object, true);
}

void kafka_closing_begin(const char *name, void (*close)(void *object), void *object)
{
  begin(name, close, object, false);
}

void kafka_closing_together(void)
{
  pthread_mutex_lock(&all.mutex);
  all.is_together = true;
  pthread_cond_broadcast(&all.ended); /* wake those that wait for one client */
  pthread_mutex_unlock(&all.mutex);
}

size_t kafka_closing_wait(int64_t until_ns)
{
  size_t n;

  pthread_mutex_lock(&all.mutex);
  while ((n = reap()) > 0 && clock_now_ns() < until_ns)
    wait_for_end(until_ns);
  pthread_mutex_unlock(&all.mutex);
  return n;
}

size_t kafka_closing_log_left(void)
{
  pthread_mutex_lock(&all.mutex);
  size_t n = reap();
  for (struct closing *c = all.first; c; c = c->next)
    log_left(c);
  pthread_mutex_unlock(&all.mutex);
  return n;
}
