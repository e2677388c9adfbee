/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the broker for a topic's policy, through an open client. Private to ingest/. */
#ifndef INGEST_TOPIC_POLICY_ASK_H
#define INGEST_TOPIC_POLICY_ASK_H

#include <librdkafka/rdkafka.h>

#include "ingest/kafka/topic_policy.h"

/* Ask for the policy of a topic. On any failure its is_known is false. Thread: any. Blocks: up to timeout_ms. */
struct topic_policy topic_policy_ask(rd_kafka_t *rk, const char *topic, int timeout_ms);

#endif
