/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for a topic's policy through a client that is open. Private to ingest/. */
#ifndef INGEST_TOPIC_POLICY_ASK_H
#define INGEST_TOPIC_POLICY_ASK_H

#include <librdkafka/rdkafka.h>

#include "ingest/topic_policy.h"

/* Whatever goes wrong, the answer is "not known". */
struct topic_policy topic_policy_ask(rd_kafka_t *rk, const char *topic, int timeout_ms);

#endif
