/* SPDX-License-Identifier: Apache-2.0 */
/* The current producer, the one that it replaced, and the table of topics that each of them knows. */
#include "daemon/delivery/reply_topics.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/log.h"
#include "base/mem.h"

/* Places in the hash table of topic names: a power of two, and at least twice the topics. */
enum { PLACES = 2048 };
static_assert(PLACES >= 2 * REPLY_TOPICS_MAX, "a search in the table must end at an empty place");

struct reply_topic {
  struct producer *producer;
  _Atomic size_t n_in_flight;
  char name[];
};

struct producer {
  struct reply_topics *all;
  struct outlet *outlet;
  _Atomic size_t n_in_flight; /* replies, and senders of them */
  size_t n_topics;
  struct reply_topic *places[PLACES];
};

struct reply_topics {
  struct reply_topics_config with;
  struct kafka_layers layers;
  char timeout_ms[24];
  struct kafka_property own[3];
  pthread_mutex_t mutex;      /* guards the fields below, and the table of the current producer */
  struct producer *current;   /* NULL before opening and while closing */
  struct producer *retired;   /* closed when its last replies have ended; NULL if there is none */
  _Atomic size_t n_in_flight; /* of both producers */
};

/* ---- Producers ---- */

static void close_producer(struct producer **p)
{
  if (!*p)
    return;
  outlet_close(&(*p)->outlet);
  for (size_t i = 0; i < PLACES; i++)
    mem_free(&(*p)->places[i]);
  mem_free(p);
}

static void on_ended(void *context, struct outlet_item *item, enum outlet_end end, const char *reason,
                     const struct sender_message *message)
{
  struct producer *p = context;
  struct reply_topics *all = p->all;
  struct reply_topics_item *reply = (struct reply_topics_item *)item;

  (void)message;
  atomic_fetch_sub(&reply->topic->n_in_flight, 1);
  all->with.ended(all->with.context, reply, end, reason);
  atomic_fetch_sub(&all->n_in_flight, 1);
  atomic_fetch_sub(&p->n_in_flight, 1); /* last: at 0 a retired producer may be closed */
}

/* Close the retired producer in the thread of the current one: a thread cannot join itself. */
static void on_tick(void *context, struct outlet *outlet)
{
  struct producer *p = context;
  struct reply_topics *all = p->all;
  struct producer *done = NULL;

  (void)outlet;
  pthread_mutex_lock(&all->mutex);
  if (all->current == p && all->retired && atomic_load(&all->retired->n_in_flight) == 0) {
    done = all->retired;
    all->retired = NULL;
  }
  pthread_mutex_unlock(&all->mutex);
  close_producer(&done);
}

static err_t open_producer(struct reply_topics *all, struct producer **out)
{
  AUTO(close_producer) struct producer *p = NULL;
  struct outlet_config config = {
    .name = "reply_topics",
    .layers = &all->layers,
    .ended = on_ended,
    .ticked = on_tick,
  };

  TRY(mem_array(1, sizeof *p, &p));
  p->all = all;
  config.context = p;
  TRY(outlet_open(&config, &p->outlet));
  *out = p;
  p = NULL;
  return ERR_OK;
}

/* Let a new producer take over: the current one knows as many topics as it may. Returns why it cannot. */
static const char *replace_producer(struct reply_topics *r)
{
  struct producer *next;

  if (r->retired)
    return "too many different reply topics at a time: send the query again later";
  if (open_producer(r, &next) != ERR_OK)
    return err_message();
  log_info("reply_topics", "topics=%d note=\"a new producer takes over\"", REPLY_TOPICS_MAX);
  r->retired = r->current;
  r->current = next;
  return NULL;
}

/* ---- Topics ---- */

/* Return the place of a name in the table, or the empty place where it belongs. */
static struct reply_topic **find_place(struct producer *p, const char *name)
{
  size_t i = XXH3_64bits(name, strlen(name)) % PLACES;

  while (p->places[i] && strcmp(p->places[i]->name, name) != 0)
    i = (i + 1) % PLACES;
  return &p->places[i];
}

/* Find or add a topic. Returns NULL, or why it cannot be added. */
static const char *find_or_add_topic(struct reply_topics *r, const char *name, struct reply_topic **out)
{
  struct reply_topic **place = find_place(r->current, name);

  if (!*place && r->current->n_topics == REPLY_TOPICS_MAX) {
    const char *reason = replace_producer(r);
    if (reason)
      return reason;
    place = find_place(r->current, name);
  }
  if (!*place) {
    if (mem_array(1, sizeof **place + strlen(name) + 1, place) != ERR_OK)
      return err_message();
    (*place)->producer = r->current;
    memcpy((*place)->name, name, strlen(name) + 1);
    r->current->n_topics++;
  }
  *out = *place;
  return NULL;
}

/* Find the topic and count the reply before it is sent, because it may end at once. Returns NULL, or why not. */
static const char *admit(struct reply_topics *r, const char *name, struct reply_topic **out)
{
  if (atomic_load(&r->n_in_flight) >= REPLY_TOPICS_IN_FLIGHT_MAX)
    return "too many replies wait for the topics that queries name";
  const char *reason = find_or_add_topic(r, name, out);
  if (reason)
    return reason;
  if (atomic_load(&(*out)->n_in_flight) >= REPLY_TOPIC_IN_FLIGHT_MAX)
    return "too many replies wait for this topic";
  atomic_fetch_add(&(*out)->n_in_flight, 1);
  atomic_fetch_add(&(*out)->producer->n_in_flight, 2); /* the reply and its sender */
  atomic_fetch_add(&r->n_in_flight, 1);
  return NULL;
}

static void uncount(struct reply_topics *r, struct reply_topic *topic)
{
  atomic_fetch_sub(&topic->n_in_flight, 1);
  atomic_fetch_sub(&r->n_in_flight, 1);
  atomic_fetch_sub(&topic->producer->n_in_flight, 1);
}

const char *reply_topics_send(struct reply_topics *r, struct reply_topics_item *item,
                              const struct sender_message *message)
{
  struct reply_topic *topic;

  pthread_mutex_lock(&r->mutex);
  const char *reason = admit(r, message->topic, &topic);
  pthread_mutex_unlock(&r->mutex);
  if (reason)
    return reason;
  struct producer *producer = topic->producer; /* it and the topic live at least while reply or sender are counted */
  item->topic = topic;
  bool is_sent = outlet_send(producer->outlet, &item->item, message);
  if (!is_sent)
    uncount(r, topic);
  atomic_fetch_sub(&producer->n_in_flight, 1); /* last: at 0 it may be closed if it is retired */
  return is_sent ? NULL : "the queue of replies to topics that queries name is full";
}

void reply_topics_count(struct reply_topics *r, size_t *n_topics, size_t *n_producers)
{
  pthread_mutex_lock(&r->mutex);
  *n_topics = r->current->n_topics;
  *n_producers = 1 + (r->retired != NULL);
  pthread_mutex_unlock(&r->mutex);
}

err_t reply_topics_open(const struct reply_topics_config *config, struct reply_topics **out)
{
  AUTO(reply_topics_close) struct reply_topics *r = NULL;

  TRY(mem_array(1, sizeof *r, &r));
  r->with = *config;
  r->layers = *config->layers;
  pthread_mutex_init(&r->mutex, NULL);
  snprintf(r->timeout_ms, sizeof r->timeout_ms, "%" PRIu64, config->timeout_ms);
  r->own[0] = (struct kafka_property){ "message.timeout.ms", r->timeout_ms };
  /* Give up an unknown topic after 2 s and not after 30 s. A broker that creates topics by itself needs less. */
  r->own[1] = (struct kafka_property){ "topic.metadata.propagation.max.ms", "2000" };
  /* With idempotence, one client's topic could cause an error that is fatal to the producer, and so to all clients. */
  r->own[2] = (struct kafka_property){ "enable.idempotence", "false" };
  kafka_layers_add(&r->layers, r->own, sizeof r->own / sizeof r->own[0]);
  pthread_mutex_lock(&r->mutex); /* the producer's thread reads `current` */
  err_code_t err = open_producer(r, &r->current);
  pthread_mutex_unlock(&r->mutex);
  TRY(err);
  *out = r;
  r = NULL;
  return ERR_OK;
}

void reply_topics_close(struct reply_topics **r)
{
  if (!*r)
    return;
  pthread_mutex_lock(&(*r)->mutex);
  struct producer *current = (*r)->current, *retired = (*r)->retired;
  (*r)->current = (*r)->retired = NULL;
  pthread_mutex_unlock(&(*r)->mutex);
  close_producer(&current); /* first: its thread may be closing a producer that was retired before */
  close_producer(&retired);
  pthread_mutex_destroy(&(*r)->mutex);
  mem_free(r);
}
