/* SPDX-License-Identifier: Apache-2.0 */
/* An embedded broker and client properties for tests. To be included after cmocka.h. */
#ifndef TESTS_SUPPORT_KAFKA_FIXTURE_H
#define TESTS_SUPPORT_KAFKA_FIXTURE_H

#include "base/clock.h"
#include "ingest/readers/topic_reader.h"
#include "ingest/kafka/embedded_broker.h"
#include "ingest/kafka/kafka_closing.h"
#include "ingest/kafka/sender.h"
#include "tests/support/assert_ok.h"

enum { KAFKA_TIMEOUT_MS = 10000 };

struct kafka_fixture {
  struct embedded_broker *broker;
  struct kafka_property properties[2];
};

static inline void kafka_fixture_init(struct kafka_fixture *k)
{
  assert_ok(embedded_broker_open(&k->broker));
  k->properties[0] = (struct kafka_property){ "bootstrap.servers", embedded_broker_bootstrap(k->broker) };
  /* The embedded broker answers each fetch only after this time. */
  k->properties[1] = (struct kafka_property){ "fetch.wait.max.ms", "5" };
}

/* Clients that could not be closed while there was a broker end with it. They are waited for: sanitizers take a thread
 * that still runs when its process ends for a leak. */
static inline void kafka_fixture_fini(struct kafka_fixture *k)
{
  embedded_broker_close(&k->broker);
  kafka_closing_wait(clock_now_ns() + KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS);
}

/* Layers for a consumer, or for a producer. */
static inline struct kafka_layers kafka_fixture_layers(const struct kafka_fixture *k, bool is_consumer)
{
  return (struct kafka_layers){ .layer = { { k->properties, is_consumer ? 2 : 1 } }, .n = 1 };
}

/* The same, with further properties of the test. */
static inline struct kafka_layers kafka_fixture_layers_with(const struct kafka_fixture *k, bool is_consumer,
                                                            const struct kafka_property *own, size_t n)
{
  struct kafka_layers layers = kafka_fixture_layers(k, is_consumer);

  kafka_layers_add(&layers, own, n);
  return layers;
}

static inline int64_t kafka_deadline_ns(void)
{
  return clock_now_ns() + KAFKA_TIMEOUT_MS * CLOCK_NS_PER_MS;
}

#endif
