/* SPDX-License-Identifier: Apache-2.0 */
/* Making Kafka clients, and sending their log lines and errors to our log. */
#include "ingest/kafka/kafka_client.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secrets.h"
#include "ingest/kafka/kafka_files.h"
#include "ingest/kafka/kafka_renewal.h"
#include "ingest/kafka/kafka_repeats.h"
#include "ingest/kafka/kafka_trouble.h"
#include "ingest/kafka/retried_header.h"

enum { TEXT_BYTES = 512 };

/* Quote a text of librdkafka for the log. Secrets are hidden first: quoting could change what they look like. */
static const char *quote(const char *text)
{
  char copy[TEXT_BYTES];

  snprintf(copy, sizeof copy, "%s", text);
  secrets_hide(copy, sizeof copy);
  return log_quote(span_of_str(copy));
}

/* A connection that failed is an error too, and on_error() logs it. Some clients are never polled, so the reason is
 * noted here. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
  bool is_failure = strcmp(facility, "FAIL") == 0;
  bool is_noted = is_failure || strcmp(facility, "SSLCERTVRFY") == 0; /* on_certificate() has noted the reason */
  enum log_level ours = level <= 3 && !is_noted ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG;

  if (is_failure)
    kafka_trouble_note_line(text);
  log_event(ours, "kafka_client", "client=%s facility=%s text=%s", rd_kafka_name(rk), facility, quote(text));
}

/* Note why a certificate is refused: librdkafka's errors do not say it. Accepts what OpenSSL has accepted, and nothing
 * else. */
static int on_certificate(rd_kafka_t *rk, const char *broker, int32_t broker_id, int *error, int depth, const char *der,
                          size_t n, char *reason, size_t n_reason, void *opaque)
{
  (void)rk, (void)broker_id, (void)depth, (void)der, (void)n, (void)opaque;
  if (*error == 0)
    return 1;
  kafka_trouble_note_certificate(broker, *error);
  snprintf(reason, n_reason, "OpenSSL's error %d", *error);
  return 0;
}

void kafka_log_error(rd_kafka_t *rk, int error, const char *reason)
{
  uint64_t n_more;

  if (kafka_repeats_allow(error, reason, &n_more))
    log_warn("kafka_error", "client=%s error=%s reason=%s more=%" PRIu64, rd_kafka_name(rk), rd_kafka_err2name(error),
             quote(reason), n_more);
}

static void on_error(rd_kafka_t *rk, int error, const char *reason, void *opaque)
{
  (void)opaque;
  kafka_log_error(rk, error, reason);
}

static err_t set_all(rd_kafka_conf_t *conf, const struct kafka_layers *layers)
{
  char reason[512];

  for (size_t i = 0; i < layers->n; i++) {
    for (size_t j = 0; j < layers->layer[i].n; j++) {
      const struct kafka_property *p = &layers->layer[i].items[j];
      if (rd_kafka_conf_set(conf, p->name, p->value, reason, sizeof reason) != RD_KAFKA_CONF_OK)
        FAIL(ERR_CONFIG, "kafka property %s: %s", p->name, reason);
    }
  }
  return ERR_OK;
}

err_t kafka_conf_make(const struct kafka_layers *layers, rd_kafka_conf_t **out)
{
  rd_kafka_conf_t *conf = rd_kafka_conf_new();

  if (layers->client)
    kafka_stats_ask(conf);
  kafka_renewal_lock();
  err_code_t err = set_all(conf, layers);
  kafka_renewal_unlock();
  if (err != ERR_OK) {
    rd_kafka_conf_destroy(conf);
    return err;
  }
  rd_kafka_conf_set_log_cb(conf, on_log);
  rd_kafka_conf_set_error_cb(conf, on_error);
  rd_kafka_conf_set_ssl_cert_verify_cb(conf, on_certificate); /* fails only without TLS, where it is not needed */
  *out = conf;
  return ERR_OK;
}

err_t kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, rd_kafka_t **out)
{
  const struct kafka_login *login;
  char reason[512];
  err_code_t err = kafka_credentials_apply(conf, &login);
  if (err == ERR_OK)
    err = kafka_files_verify(conf);
  rd_kafka_t *rk = err == ERR_OK ? rd_kafka_new(type, conf, reason, sizeof reason) : NULL;

  if (!rk)
    rd_kafka_conf_destroy(conf);
  if (err != ERR_OK)
    return err;
  if (!rk)
    FAIL(ERR_CONFIG, "a Kafka client cannot be created: %s", reason);
  kafka_credentials_begin(rk, login);
  *out = rk;
  return ERR_OK;
}

void kafka_client_destroy(rd_kafka_t *rk, int flags)
{
  kafka_credentials_end(rk);
  rd_kafka_destroy_flags(rk, flags);
}

struct span kafka_header(const rd_kafka_message_t *message, const char *name)
{
  rd_kafka_headers_t *headers;
  const void *value;
  size_t n;

  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, name, &value, &n) != RD_KAFKA_RESP_ERR_NO_ERROR || !value)
    return (struct span){ 0 };
  return span_of(value, n);
}

struct topic_record kafka_record(const rd_kafka_message_t *m)
{
  return (struct topic_record){
    .has_key = m->key != NULL,
    .key = span_of(m->key, m->key_len),
    .has_value = m->payload != NULL,
    .value = span_of(m->payload, m->len),
    .content_type = kafka_header(m, "content-type"),
    .retried = kafka_header(m, RETRIED_HEADER),
    .partition = m->partition,
    .offset = m->offset,
    .timestamp_ms = rd_kafka_message_timestamp(m, NULL),
  };
}

struct trace_headers kafka_trace_headers(const rd_kafka_message_t *message)
{
  struct trace_headers trace = { 0 };

  for (size_t i = 0; i < TRACE_HEADERS; i++) {
    struct span value = kafka_header(message, trace_header_names[i]);
    if (value.n <= TRACE_HEADER_MAX)
      trace.value[i] = value;
  }
  return trace;
}

int kafka_ms_until(int64_t deadline_ns)
{
  int64_t left = (deadline_ns - clock_now_ns()) / CLOCK_NS_PER_MS;

  return left < 1 ? 1 : (int)left;
}
