/* SPDX-License-Identifier: Apache-2.0 */
/* The list of dead letters on their way, oldest first. Their outlet is patient: they wait for a topic that is away. */
#include "daemon/delivery/dead_letters.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka/retried_header.h"

enum { LETTERS_MAX = 10000, BYTES_MAX = 64 << 20, LOG_AFTER_S = 10, TICKET_TIMEOUT_S = 60 };

/* A letter on its way. */
struct sent_letter {
  struct outlet_item item; /* first: the outlet knows the letter by it */
  struct sent_letter *older;
  struct sent_letter *newer;
  int64_t since_ns;
  size_t n_bytes;
  bool is_bare;                   /* sent without key and value */
  enum dead_letter_waiter waiter; /* NONE once a query's ticket has ended */
  uint32_t ticket;
  _Atomic bool *is_settled;
  int32_t partition;
  int64_t offset;
  char source_topic[];
};

struct dead_letters {
  struct dead_letters_config with;
  struct outlet *outlet;
  pthread_mutex_t mutex; /* guards the list and each letter's waiter */
  struct sent_letter *oldest;
  struct sent_letter *newest;
  size_t n_bytes;
  _Atomic size_t n_open;
  _Atomic bool has_alarmed;
  int64_t late_since_ns; /* a letter has waited since then; 0 if that is not logged yet. Thread: the outlet's */
  uint64_t max_late;     /* maximum number of letters that waited since then */
};

/* ---- The list of open letters, oldest first ---- */

/* Returns false if the letters on their way are too many or too large. An empty list accepts any letter. */
static bool append(struct dead_letters *l, struct sent_letter *letter)
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

/* Returns who still waits for the letter. */
static enum dead_letter_waiter detach(struct dead_letters *l, struct sent_letter *letter)
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
  enum dead_letter_waiter waiter = letter->waiter;
  letter->waiter = DEAD_LETTER_WAITER_NONE;
  pthread_mutex_unlock(&l->mutex);
  return waiter;
}

/* ---- Ends ---- */

static void log_lost(struct dead_letters *l, const char *topic, int32_t partition, int64_t offset, const char *reason)
{
  counters_add(&l->with.counters->undeliverable, 1);
  log_error("undeliverable", "kind=dead_letter topic=%s partition=%" PRId32 " offset=%" PRId64 " reason=%s", topic,
            partition, offset, log_quote(span_of_str(reason)));
}

static void end_letter(struct dead_letters *l, struct sent_letter *letter, bool is_settled)
{
  enum dead_letter_waiter waiter = detach(l, letter);

  if (is_settled && waiter == DEAD_LETTER_WAITER_QUERY)
    offset_tracker_done(l->with.tracker, letter->ticket);
  if (is_settled && waiter == DEAD_LETTER_WAITER_CATALOGUE)
    atomic_store(letter->is_settled, true);
  atomic_fetch_sub(&l->n_open, 1);
  mem_free(&letter);
}

/* Send a refused letter again without key and value: it may be too large for the topic. Its headers say where to find
 * the message. */
static void send_bare(struct dead_letters *l, struct sent_letter *letter, const char *reason,
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

static void note_lost_producer(struct dead_letters *l, const char *reason)
{
  if (l->with.alarm && !atomic_exchange(&l->has_alarmed, true))
    alarm_raise(l->with.alarm, "dead_letters",
                err_set(ERR_KAFKA, __FILE__, __LINE__, "the producer of dead letters is lost: %s", reason));
}

static void on_ended(void *context, struct outlet_item *item, enum outlet_end end, const char *reason,
                     const struct sender_message *message)
{
  struct dead_letters *l = context;
  struct sent_letter *letter = (struct sent_letter *)item;

  switch (end) {
  case OUTLET_DELIVERED:
    end_letter(l, letter, true);
    return;
  case OUTLET_CLOSED: /* the message is handled after a restart */
    end_letter(l, letter, false);
    return;
  case OUTLET_LOST: /* likewise. Without idempotence it is not expected */
    note_lost_producer(l, reason);
    end_letter(l, letter, false);
    return;
  case OUTLET_REFUSED:
    if (!letter->is_bare && (message->has_key || message->has_value)) {
      send_bare(l, letter, reason, message);
      return;
    }
    break;
  }
  log_lost(l, letter->source_topic, letter->partition, letter->offset, reason);
  end_letter(l, letter, true);
}

/* ---- Letters that wait for long ---- */

static void log_waiting(struct dead_letters *l, int64_t now, int64_t oldest_ns, size_t n)
{
  bool is_late = oldest_ns && now - oldest_ns > LOG_AFTER_S * CLOCK_NS_PER_S;

  if (is_late && !l->late_since_ns) {
    l->late_since_ns = oldest_ns;
    l->max_late = 0;
    log_warn("dead_letters_waiting", "letters=%zu oldest_s=%" PRId64 " note=\"no broker accepts them\"", n,
             (now - oldest_ns) / CLOCK_NS_PER_S);
  }
  if (l->late_since_ns && n > l->max_late)
    l->max_late = n;
  if (!is_late && l->late_since_ns) {
    log_info("dead_letters_resumed", "letters=%zu most=%" PRIu64 " took_s=%" PRId64, n, l->max_late,
             (now - l->late_since_ns) / CLOCK_NS_PER_S);
    l->late_since_ns = 0;
  }
}

/* End the tickets of queries whose letters have waited too long. The letters are still sent. */
static void end_late_tickets(struct dead_letters *l, int64_t now)
{
  pthread_mutex_lock(&l->mutex);
  for (struct sent_letter *letter = l->oldest; letter; letter = letter->newer) {
    if (now - letter->since_ns < TICKET_TIMEOUT_S * CLOCK_NS_PER_S)
      break;
    if (letter->waiter == DEAD_LETTER_WAITER_QUERY) {
      offset_tracker_done(l->with.tracker, letter->ticket);
      letter->waiter = DEAD_LETTER_WAITER_NONE;
    }
  }
  pthread_mutex_unlock(&l->mutex);
}

static void on_tick(void *context, struct outlet *outlet)
{
  struct dead_letters *l = context;
  int64_t now = clock_now_ns();

  (void)outlet;
  pthread_mutex_lock(&l->mutex);
  int64_t oldest_ns = l->oldest ? l->oldest->since_ns : 0;
  pthread_mutex_unlock(&l->mutex);
  size_t n = dead_letters_n_open(l);
  atomic_store(&l->with.counters->dead_letters_waiting, n);
  log_waiting(l, now, oldest_ns, n);
  end_late_tickets(l, now);
}

/* ---- Sending ---- */

static err_t make_letter(const struct dead_letter *from, struct sent_letter **out)
{
  size_t n_topic = strlen(from->source_topic) + 1;
  struct sent_letter *letter;

  TRY(mem_array(1, sizeof *letter + n_topic, &letter));
  letter->since_ns = clock_now_ns();
  letter->n_bytes = sizeof *letter + n_topic + from->key.n + from->value.n;
  letter->waiter = from->waiter;
  letter->ticket = from->ticket;
  letter->is_settled = from->is_settled;
  letter->partition = from->partition;
  letter->offset = from->offset;
  memcpy(letter->source_topic, from->source_topic, n_topic);
  *out = letter;
  return ERR_OK;
}

static void log_letter(struct dead_letters *l, const struct dead_letter *letter, const char *reason)
{
  counters_add(&l->with.counters->dead_letters[letter->kind], 1);
  log_warn("dead_letter", "topic=%s partition=%" PRId32 " offset=%" PRId64 " key=%s reason=%s", letter->source_topic,
           letter->partition, letter->offset, log_quote(letter->key), log_quote(span_of_str(reason)));
}

/* A letter's message. It is borrowed from the letter and from itself: it must not move. */
struct letter_message {
  struct sender_message message;
  struct sender_header headers[SENDER_HEADERS_MAX];
  char partition[16], offset[24];
  char reason[1024]; /* a copy: the letter's may be err_message(), which changes */
};

static void add_header(struct letter_message *m, const char *name, struct span value)
{
  m->headers[m->message.n_headers++] = (struct sender_header){ name, value };
}

static void add_headers(struct letter_message *m, const struct dead_letter *letter)
{
  snprintf(m->partition, sizeof m->partition, "%" PRId32, letter->partition);
  snprintf(m->offset, sizeof m->offset, "%" PRId64, letter->offset);
  snprintf(m->reason, sizeof m->reason, "%s", letter->reason);
  add_header(m, "sluice.topic", span_of_str(letter->source_topic));
  add_header(m, "sluice.partition", span_of_str(m->partition));
  add_header(m, "sluice.offset", span_of_str(m->offset));
  add_header(m, "sluice.reason", span_of_str(m->reason));
  if (letter->content_type.n)
    add_header(m, "content-type", letter->content_type);
  if (letter->retried.n && letter->retried.n <= RETRIED_DIGITS_MAX)
    add_header(m, RETRIED_HEADER, letter->retried);
}

static void write_message(const struct dead_letter *letter, struct letter_message *out)
{
  out->message = (struct sender_message){
    .topic = letter->topic,
    .has_key = letter->has_key,
    .key = letter->key,
    .has_value = letter->has_value,
    .value = letter->value,
    .headers = out->headers,
  };
  add_headers(out, letter);
}

/* Give the message to the outlet. Returns false if the letter was not taken. */
static bool pass_on(struct dead_letters *l, struct sent_letter *letter, const struct sender_message *message)
{
  if (!append(l, letter))
    return false;
  if (outlet_send(l->outlet, &letter->item, message))
    return true;
  detach(l, letter);
  atomic_fetch_sub(&l->n_open, 1);
  return false;
}

bool dead_letters_send(struct dead_letters *l, const struct dead_letter *letter)
{
  struct letter_message text;
  struct sent_letter *made;

  write_message(letter, &text);
  if (make_letter(letter, &made) != ERR_OK)
    return false;
  if (!pass_on(l, made, &text.message)) {
    mem_free(&made);
    return false;
  }
  log_letter(l, letter, text.reason);
  return true;
}

void dead_letters_drop(struct dead_letters *l, const struct dead_letter *letter)
{
  log_lost(l, letter->source_topic, letter->partition, letter->offset, letter->reason);
  offset_tracker_done(l->with.tracker, letter->ticket);
}

size_t dead_letters_n_open(const struct dead_letters *l)
{
  return atomic_load(&l->n_open);
}

err_t dead_letters_open(const struct dead_letters_config *config, struct dead_letters **out)
{
  /* The order of letters does not matter. With idempotence, a gap in the sequence would be fatal to the producer. */
  static const struct kafka_property own[] = { { "enable.idempotence", "false" } };
  AUTO(dead_letters_close) struct dead_letters *l = NULL;
  struct kafka_layers layers = *config->layers;
  struct outlet_config outlet = {
    .name = "dead_letters",
    .layers = &layers,
    .is_patient = true,
    .ended = on_ended,
    .ticked = on_tick,
    .pulses = config->alarm ? &config->alarm->pulses : NULL,
  };

  kafka_layers_add(&layers, own, sizeof own / sizeof own[0]);
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
