/* SPDX-License-Identifier: Apache-2.0 */
/* Turn librdkafka's lines into sentences, and keep the newest one. */
#include "ingest/kafka/kafka_trouble.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secrets.h"

enum { SENTENCES_MAX = 32, TEXT_BYTES = 256, WORD_BYTES = 128, CURRENT_S = 30, LOG_EVERY_S = 60 };

/* A sentence is never changed or freed, because readers keep pointers to it. */
struct sentence {
  char text[TEXT_BYTES];
  int64_t logged_ns; /* 0: never */
};

static struct {
  pthread_mutex_t mutex;
  struct sentence all[SENTENCES_MAX];
  size_t n;
  const char *newest;
  int64_t noted_ns;
  int64_t certificate_ns; /* when a certificate was noted */
} trouble = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* What librdkafka's lines contain, and what that means. The first row that fits counts. */
static const struct {
  const char *words;
  const char *begin;  /* of the sentence, before the broker's address */
  const char *reason; /* NULL: that of the line */
} rows[] = {
  { "SASL authentication error: Authentication failed: ", "cannot authenticate to", NULL },
  { "SASL authentication error: ", "cannot authenticate to", NULL },
  { "SASL", "cannot authenticate to", NULL },
  { "alert certificate required", "no TLS connection to",
    "the broker wants a certificate: set ssl.certificate.location and ssl.key.location" },
  { "alert certificate expired", "no TLS connection to",
    "the broker says that our certificate (ssl.certificate.location) has expired" },
  { "alert unknown ca", "no TLS connection to",
    "the broker does not trust the authority of our certificate (ssl.certificate.location)" },
  { "alert bad certificate", "no TLS connection to",
    "the broker wants a certificate, or refuses the one of ssl.certificate.location" },
  { "alert certificate unknown", "no TLS connection to",
    "the broker refuses our certificate (ssl.certificate.location)" },
  { "SSL handshake failed: ", "no TLS connection to", NULL },
  { "might be caused by incorrect security.protocol", "no connection to",
    "it was closed at once: is security.protocol right?" },
};

/* Find the text or add it. If the table is full, the last sentence stands for all further ones. */
static struct sentence *intern(const char *text)
{
  for (size_t i = 0; i < trouble.n; i++) {
    if (strcmp(trouble.all[i].text, text) == 0)
      return &trouble.all[i];
  }
  if (trouble.n == SENTENCES_MAX)
    return &trouble.all[SENTENCES_MAX - 1];
  struct sentence *s = &trouble.all[trouble.n++];
  snprintf(s->text, sizeof s->text, "%s",
           trouble.n == SENTENCES_MAX ? "cannot connect to Kafka, for many different reasons: see the log" : text);
  return s;
}

static void log_sentence(struct sentence *s)
{
  int64_t now_ns = clock_now_ns();

  if (s->logged_ns && now_ns - s->logged_ns < LOG_EVERY_S * CLOCK_NS_PER_S)
    return;
  s->logged_ns = now_ns;
  log_warn("kafka_refused", "reason=%s note=\"tried again until it works\"", log_quote(span_of_str(s->text)));
}

/* The caller holds the mutex. */
static void note(const char *text)
{
  struct sentence *s = intern(text);

  trouble.newest = s->text;
  trouble.noted_ns = clock_now_ns();
  log_sentence(s);
}

const char *kafka_trouble_newest(void)
{
  pthread_mutex_lock(&trouble.mutex);
  bool is_current = trouble.newest && clock_now_ns() - trouble.noted_ns < CURRENT_S * CLOCK_NS_PER_S;
  const char *text = is_current ? trouble.newest : NULL;
  pthread_mutex_unlock(&trouble.mutex);
  return text;
}

void kafka_trouble_forget(void)
{
  pthread_mutex_lock(&trouble.mutex);
  trouble.newest = NULL;
  pthread_mutex_unlock(&trouble.mutex);
}

/* ---- Lines of the log ---- */

/* Copy the address from "[thrd:ssl://127.0.0.1:9093/bootstrap]: ...", where "ssl://" may be missing. */
static void copy_address(const char *line, char out[WORD_BYTES])
{
  const char *thread = strstr(line, "[thrd:");
  const char *protocol = strstr(line, "://");
  const char *begin = protocol ? protocol + strlen("://") : thread ? thread + strlen("[thrd:") : line;

  snprintf(out, WORD_BYTES, "%.*s", (int)strcspn(begin, "/ ]"), begin);
}

/* Copy the reason that follows `words`, without the time that it took: "... (after 3ms in state AUTH_REQ)". */
static void copy_reason(const char *line, const char *words, char out[WORD_BYTES])
{
  const char *begin = strstr(line, words) + (words[strlen(words) - 1] == ' ' ? strlen(words) : 0);
  const char *end = strstr(begin, " (after ");

  snprintf(out, WORD_BYTES, "%.*s", (int)(end ? (size_t)(end - begin) : strlen(begin)), begin);
}

/* Was the certificate that this line is about noted just before, with a better reason? */
static bool is_about_certificate(const char *line)
{
  return strstr(line, "certificate verify failed") &&
         clock_now_ns() - trouble.certificate_ns < CURRENT_S * CLOCK_NS_PER_S;
}

static void note_row(size_t row, const char *line)
{
  char address[WORD_BYTES], reason[WORD_BYTES], text[TEXT_BYTES];

  copy_address(line, address);
  copy_reason(line, rows[row].words, reason);
  secrets_hide(reason, sizeof reason);
  snprintf(text, sizeof text, "%s %.80s: %s", rows[row].begin, address, rows[row].reason ? rows[row].reason : reason);
  pthread_mutex_lock(&trouble.mutex);
  if (is_about_certificate(line))
    trouble.noted_ns = clock_now_ns();
  else
    note(text);
  pthread_mutex_unlock(&trouble.mutex);
}

/* A broker that goes away while a client logs in, or during the TLS handshake, has refused nothing. */
static bool is_only_away(const char *text)
{
  return strstr(text, "failed: Local: ") || strstr(text, "SSL handshake failed: Disconnected") ||
         strstr(text, "unexpected eof while reading");
}

void kafka_trouble_note_line(const char *text)
{
  if (is_only_away(text))
    return;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strstr(text, rows[i].words)) {
      note_row(i, text);
      return;
    }
  }
}

/* ---- Certificates ---- */

/* The errors that operators meet; openssl-verification-options(1) lists all. Their numbers are part of OpenSSL's
 * interface. */
static const char *certificate_text(int error)
{
  switch (error) {
  case 9:
    return "the broker's certificate is not valid yet: is the clock right?";
  case 10:
    return "the broker's certificate, or one of its authorities, has expired";
  case 18:
  case 19:
  case 20:
  case 21:
    return "the broker's certificate is not from an authority of ssl.ca.location";
  case 23:
    return "the broker's certificate is revoked";
  case 62:
  case 64:
    return "the broker's certificate is for another host";
  default:
    return NULL;
  }
}

void kafka_trouble_note_certificate(const char *broker, int error)
{
  const char *known = certificate_text(error);
  char text[TEXT_BYTES];

  if (known)
    snprintf(text, sizeof text, "no TLS connection to %.100s: %s", broker, known);
  else
    snprintf(text, sizeof text, "no TLS connection to %.100s: its certificate is refused, OpenSSL's error %d", broker,
             error);
  pthread_mutex_lock(&trouble.mutex);
  trouble.certificate_ns = clock_now_ns();
  note(text);
  pthread_mutex_unlock(&trouble.mutex);
}
