/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/delivery/dead_letters.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/mem.h"

enum { LETTERS_MAX = 10000, BYTES_MAX = 64 << 20, SAY_AFTER_S = 10, TICKET_TIMEOUT_S = 60 };

/* A letter on its way. */
struct letter {
  struct outlet_item item;
  struct letter *older;
  struct letter *newer;
  int64_t since_ns;
  size_t n_bytes;
  bool is_bare; /* sent without key and value */
  bool has_ticket; /* of a query, not ended yet */
  uint32_t ticket;
  _Atomic bool *is_settled;
  int32_t partition;
  int64_t offset;
  char source_topic[];
};

struct dead_letters {
  struct dead_letters_config with;
  struct outlet *outlet;
  pthread_mutex_t mutex; /* guards the list and each letter's ticket */
  struct letter *oldest;
  struct letter *newest;
  size_t n_bytes;
  _Atomic size_t n_open;
  int64_t away_ns; /* since when letters wait for longer than usual; 0: they do not. Thread: the outlet's */
  uint64_t n_away; /* most that waited meanwhile */
  struct log_limit limit;
  struct log_limit lost_limit;
};

/* ---- The list of open letters, oldest first ---- */

/* Returns false where too many, or too large ones, are on their way. One is always taken. */
static bool append(struct dead_letters *l, struct letter *letter)
{
  pthread_mutex_lock(&l->mutex);
  size_t n = atomic_load(&l->n_open);
  bool has_room = n == 0 || (n < LETTERS_MAX && l->n_bytes + letter->n_bytes <= BYTES_MAX);
  if (has_room) {
    letter->older = l->newest;
    if (l->newest)
      l->newest->newer = letter;
    else
      l->oldest = letter;
    l->newest = letter;
    l->n_bytes += letter->n_bytes;
    atomic_fetch_add(&l->n_open, 1);
  }
  pthread_mutex_unlock(&l->mutex);
  return has_room;
}

/* Returns whether it still had a ticket. */
static bool detach(struct dead_letters *l, struct letter *letter)
{
  pthread_mutex_lock(&l->mutex);
  if (letter->older)
    letter->older->newer = letter->newer;
  else
    l->oldest = letter->newer;
  if (letter->newer)
    letter->newer->older = letter->older;
  else
    l->newest = letter->older;
  l->n_bytes -= letter->n_bytes;
  bool had_ticket = letter->has_ticket;
  letter->has_ticket = false;
  pthread_mutex_unlock(&l->mutex);
  return had_ticket;
}

/* ---- Ends ---- */

static void log_lost(struct dead_letters *l, const char *topic, int32_t partition, int64_t offset, const char *reason)
{
  counters_add(&l->with.counters->undeliverable, 1);
  if (log_limit_allows(&l->lost_limit, "undeliverable"))
    log_error("undeliverable", "kind=dead_letter topic=%s partition=%" PRId32 " offset=%" PRId64 " reason=%s", topic,
              partition, offset, log_quote(span_of_str(reason)));
}

static void end_letter(struct dead_letters *l, struct letter *letter, bool is_settled)
{
  bool had_ticket = detach(l, letter);

  if (is_settled && had_ticket)
    l->with.ticket_ended(l->with.context, letter->ticket);
  if (is_settled && letter->is_settled)
    atomic_store(letter->is_settled, true);
  atomic_fetch_sub(&l->n_open, 1);
  mem_free(&letter);
}

/* The topic takes smaller messages than the one that this came from: the headers say where to find it. */
static void send_bare(struct dead_letters *l, struct letter *letter, const char *reason,
                      const struct sender_message *message)
{
  struct sender_header headers[SENDER_HEADERS_MAX];
  struct sender_message bare = { .topic = message->topic, .has_value = false, .headers = headers };

  for (size_t i = 0; i < message->n_headers && bare.n_headers < SENDER_HEADERS_MAX - 1; i++)
    headers[bare.n_headers++] = message->headers[i];
  headers[bare.n_headers++] = (struct sender_header){ "sluice.left-out", span_of_str(reason) };
  letter->is_bare = true;
  letter->item = (struct outlet_item){ 0 };
  outlet_send_later(l->outlet, &letter->item, &bare);
}

static void on_ended(void *context, struct outlet_item *item, enum outlet_end end, const char *reason,
                     const struct sender_message *message)
{
  struct dead_letters *l = context;
  struct letter *letter = (struct letter *)item;

  switch (end) {
  case OUTLET_DELIVERED:
    end_letter(l, letter, true);
    return;
  case OUTLET_CLOSED:
    end_letter(l, letter, false);
    return;
  case OUTLET_REFUSED:
    if (!letter->is_bare && (message->has_key || message->has_value)) {
      send_bare(l, letter, reason, message);
      return;
    }
    break;
  case OUTLET_LOST:
    break;
  }
  log_lost(l, letter->source_topic, letter->partition, letter->offset, reason);
  end_letter(l, letter, true);
}

/* ---- What waits for long ---- */

static void say_waiting(struct dead_letters *l, int64_t now, int64_t oldest_ns, size_t n)
{
  bool is_late = oldest_ns && now - oldest_ns > SAY_AFTER_S * CLOCK_NS_PER_S;

  if (is_late && !l->away_ns) {
    l->away_ns = oldest_ns;
    l->n_away = 0;
    log_warn("dead_letters_waiting", "letters=%zu oldest_s=%" PRId64 " note=\"no broker takes them\"", n,
             (now - oldest_ns) / CLOCK_NS_PER_S);
  }
  if (l->away_ns && n > l->n_away)
    l->n_away = n;
  if (!is_late && l->away_ns) {
    log_info("dead_letters_resumed", "letters=%zu most=%" PRIu64 " took_s=%" PRId64, n, l->n_away,
             (now - l->away_ns) / CLOCK_NS_PER_S);
    l->away_ns = 0;
  }
}

/* Tickets of queries that have been held for too long end; the letters themselves go on. */
static void end_late_tickets(struct dead_letters *l, int64_t now)
{
  pthread_mutex_lock(&l->mutex);
  for (struct letter *letter = l->oldest; letter; letter = letter->newer) {
    if (now - letter->since_ns < TICKET_TIMEOUT_S * CLOCK_NS_PER_S)
      break;
    if (letter->has_ticket)
      l->with.ticket_ended(l->with.context, letter->ticket);
    letter->has_ticket = false;
  }
  pthread_mutex_unlock(&l->mutex);
}

static void on_tick(void *context)
{
  struct dead_letters *l = context;
  int64_t now = clock_now_ns();

  pthread_mutex_lock(&l->mutex);
  int64_t oldest_ns = l->oldest ? l->oldest->since_ns : 0;
  pthread_mutex_unlock(&l->mutex);
  size_t n = dead_letters_n_open(l);
  atomic_store(&l->with.counters->dead_letters_waiting, n);
  say_waiting(l, now, oldest_ns, n);
  end_late_tickets(l, now);
}

/* ---- Sending ---- */

static err_t make_letter(const struct delivery_dead_letter *from, struct letter **out)
{
  size_t n_topic = strlen(from->source_topic) + 1;
  struct letter *letter;

  TRY(mem_array(1, sizeof *letter + n_topic, &letter));
  letter->since_ns = clock_now_ns();
  letter->n_bytes = sizeof *letter + n_topic + from->key.n + from->value.n;
  letter->has_ticket = from->is_query;
  letter->ticket = from->ticket;
  letter->is_settled = from->is_settled;
  letter->partition = from->partition;
  letter->offset = from->offset;
  memcpy(letter->source_topic, from->source_topic, n_topic);
  *out = letter;
  return ERR_OK;
}

static void log_letter(struct dead_letters *l, const struct delivery_dead_letter *letter, const char *reason)
{
  counters_add(&l->with.counters->dead_letters, 1);
  if (log_limit_allows(&l->limit, "dead_letters"))
    log_warn("dead_letter", "topic=%s partition=%" PRId32 " offset=%" PRId64 " key=%s reason=%s", letter->source_topic,
             letter->partition, letter->offset, log_quote(letter->key), log_quote(span_of_str(reason)));
}

bool dead_letters_send(struct dead_letters *l, const struct delivery_dead_letter *letter)
{
  char partition[16], offset[24], reason[1024]; /* a copy: err_message() changes with each failure */
  struct letter *made;

  snprintf(reason, sizeof reason, "%s", letter->reason);
  snprintf(partition, sizeof partition, "%" PRId32, letter->partition);
  snprintf(offset, sizeof offset, "%" PRId64, letter->offset);
  struct sender_header headers[] = {
    { "sluice.topic", span_of_str(letter->source_topic) },
    { "sluice.partition", span_of_str(partition) },
    { "sluice.offset", span_of_str(offset) },
    { "sluice.reason", span_of_str(reason) },
    { "content-type", letter->content_type },
  };
  struct sender_message message = {
    .topic = letter->topic,
    .has_key = letter->has_key,
    .key = letter->key,
    .has_value = letter->has_value,
    .value = letter->value,
    .headers = headers,
    .n_headers = sizeof headers / sizeof headers[0] - (letter->content_type.n == 0),
  };

  if (make_letter(letter, &made) != ERR_OK)
    return false;
  if (!append(l, made)) {
    mem_free(&made);
    return false;
  }
  if (!outlet_send(l->outlet, &made->item, &message)) {
    detach(l, made);
    atomic_fetch_sub(&l->n_open, 1);
    mem_free(&made);
    return false;
  }
  log_letter(l, letter, reason);
  return true;
}

void dead_letters_drop(struct dead_letters *l, const struct delivery_dead_letter *letter)
{
  log_lost(l, letter->source_topic, letter->partition, letter->offset, letter->reason);
  if (letter->is_query)
    l->with.ticket_ended(l->with.context, letter->ticket);
}

size_t dead_letters_n_open(const struct dead_letters *l)
{
  return atomic_load(&l->n_open);
}

err_t dead_letters_open(const struct dead_letters_config *config, struct dead_letters **out)
{
  /* Nobody needs the order of letters, and a lost sequence must not lose the producer. */
  static const struct kafka_property own[] = { { "enable.idempotence", "false" } };
  AUTO(dead_letters_close) struct dead_letters *l = NULL;
  struct kafka_layers layers = *config->layers;
  struct outlet_config outlet = {
    .name = "dead_letters", .layers = &layers, .is_patient = true, .ended = on_ended, .ticked = on_tick,
    .pulses = config->pulses,
  };

  layers.layer[layers.n++] = (struct kafka_properties){ own, sizeof own / sizeof own[0] };
  TRY(mem_array(1, sizeof *l, &l));
  l->with = *config;
  pthread_mutex_init(&l->mutex, NULL);
  outlet.context = l;
  TRY(outlet_open(&outlet, &l->outlet));
  *out = l;
  l = NULL;
  return ERR_OK;
}

void dead_letters_close(struct dead_letters **l)
{
  if (!*l)
    return;
  outlet_close(&(*l)->outlet);
  pthread_mutex_destroy(&(*l)->mutex);
  mem_free(l);
}
