/* SPDX-License-Identifier: Apache-2.0 */
/* Making Kafka clients from configuration properties, and small helpers for them. Private to ingest/. */
#ifndef INGEST_KAFKA_CLIENT_H
#define INGEST_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka/kafka_properties.h"
#include "ingest/kafka/topic_record.h"
#include "ingest/kafka/trace_headers.h"

/* Make a client configuration from layers of properties. librdkafka's log lines and errors go to our log. The caller
 * owns `*out` until kafka_client_new() takes it.
 *
 * Returns ERR_OK; ERR_CONFIG with the property and librdkafka's reason.
 */
err_t kafka_conf_make(const struct kafka_layers *layers, rd_kafka_conf_t **out);

/* Log an error of a client. kafka_conf_make() installs it as the error callback. A client with its own error callback
 * calls it from there. */
void kafka_log_error(rd_kafka_t *rk, int error, const char *reason);

/* Have a client make statistics, which kafka_conf_make() does for one with a name; take those of the client from now
 * on. NULL: do nothing. */
void kafka_stats_ask(rd_kafka_conf_t *conf);
void kafka_stats_watch(const rd_kafka_t *rk, const char *client);

/* Make a client. It takes ownership of the configuration, even on error. */
err_t kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, rd_kafka_t **out);

/* Destroy a client that kafka_client_new() made.
 *
 * flags  as those of rd_kafka_destroy_flags(); 0 for none
 */
void kafka_client_destroy(rd_kafka_t *rk, int flags);

/* kafka_credentials.c: use the newest credentials in a client configuration that is complete, and return what it was
 * configured with, or NULL if it has none; begin and end to change those of a client. */
struct kafka_login;
err_t kafka_credentials_apply(rd_kafka_conf_t *conf, const struct kafka_login **out);
void kafka_credentials_begin(rd_kafka_t *rk, const struct kafka_login *login);
void kafka_credentials_end(rd_kafka_t *rk);

/* Return the value of a header, or an empty span if there is none. Valid as long as the message. */
struct span kafka_header(const rd_kafka_message_t *message, const char *name);

/* Return the record of a message without an error. Valid as long as the message. */
struct topic_record kafka_record(const rd_kafka_message_t *message);

/* Return the headers of a trace; those that are too long are empty. Valid as long as the message. */
struct trace_headers kafka_trace_headers(const rd_kafka_message_t *message);

/* Return the milliseconds until a deadline of clock_now_ns(), at least 1. */
int kafka_ms_until(int64_t deadline_ns);

#endif
