/* SPDX-License-Identifier: Apache-2.0 */
/* What the Kafka clients of this folder share. Private to ingest/. */
#ifndef INGEST_KAFKA_CLIENT_H
#define INGEST_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka_properties.h"

/* A configuration from layers of properties, with librdkafka's log lines sent to ours.
 * Returns ERR_CONFIG with the property and librdkafka's reason. The caller owns `*out` until rd_kafka_new() takes it.
 */
err_t kafka_conf_make(const struct kafka_layers *layers, rd_kafka_conf_t **out);

/* The error callback that kafka_conf_make() sets: logs. For a client that sets one of its own and looks at the code. */
void kafka_log_error(rd_kafka_t *rk, int error, const char *reason);

/* Make a client; takes the configuration in any case. */
err_t kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, rd_kafka_t **out);

/* Commit offsets, and wait for the group's answer, but not for ever as rd_kafka_commit() does. Returns
 * RD_KAFKA_RESP_ERR__TIMED_OUT when none came in time: then they may be committed or not. */
rd_kafka_resp_err_t kafka_commit_within(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets, int timeout_ms);

/* Value of a header, or an empty span; valid as long as the message. */
struct span kafka_header(const rd_kafka_message_t *message, const char *name);

/* Layers with one more in front: what this client needs unless the configuration says otherwise. */
struct kafka_layers kafka_layers_under(const struct kafka_property *defaults, size_t n,
                                       const struct kafka_layers *layers);

#endif
