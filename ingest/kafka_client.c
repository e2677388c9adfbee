/* SPDX-License-Identifier: Apache-2.0 */
/* Making Kafka clients, and sending their log lines and errors to our log. */
#include "ingest/kafka_client.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
  enum log_level ours = level <= 3 ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG;

  log_event(ours, "kafka_client", "client=%s facility=%s text=%s", rd_kafka_name(rk), facility,
            log_quote(span_of_str(text)));
}

void kafka_log_error(rd_kafka_t *rk, int error, const char *reason)
{
  log_warn("kafka_error", "client=%s error=%s reason=%s", rd_kafka_name(rk), rd_kafka_err2name(error),
           log_quote(span_of_str(reason)));
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
  err_code_t err = set_all(conf, layers);

  if (err != ERR_OK) {
    rd_kafka_conf_destroy(conf);
    return err;
  }
  rd_kafka_conf_set_log_cb(conf, on_log);
  rd_kafka_conf_set_error_cb(conf, on_error);
  *out = conf;
  return ERR_OK;
}

err_t kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, rd_kafka_t **out)
{
  char reason[512];
  rd_kafka_t *rk = rd_kafka_new(type, conf, reason, sizeof reason);

  if (!rk) {
    rd_kafka_conf_destroy(conf);
    FAIL(ERR_CONFIG, "a Kafka client cannot be created: %s", reason);
  }
  *out = rk;
  return ERR_OK;
}

rd_kafka_resp_err_t kafka_commit_within(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets, int timeout_ms)
{
  rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
  rd_kafka_resp_err_t error = rd_kafka_commit_queue(rk, offsets, queue, NULL, NULL);

  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
    error = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (event)
      rd_kafka_event_destroy(event);
  }
  rd_kafka_queue_destroy(queue);
  return error;
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

struct kafka_layers kafka_layers_under(const struct kafka_property *defaults, size_t n,
                                       const struct kafka_layers *layers)
{
  struct kafka_layers all = { .n = 1 };

  all.layer[0] = (struct kafka_properties){ defaults, n };
  assert(layers->n < KAFKA_LAYERS_MAX);
  for (size_t i = 0; i < layers->n; i++)
    all.layer[all.n++] = layers->layer[i];
  return all;
}

int kafka_ms_until(int64_t deadline_ns)
{
  int64_t left = (deadline_ns - clock_now_ns()) / CLOCK_NS_PER_MS;

  return left < 1 ? 1 : (int)left;
}
