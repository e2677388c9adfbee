/* SPDX-License-Identifier: Apache-2.0 */
/* A property of certificates that a test makes unusable, as they are while their files are being written. Include it
 * after cmocka.h. */
#ifndef TESTS_SUPPORT_TLS_PROPERTY_H
#define TESTS_SUPPORT_TLS_PROPERTY_H

#include "ingest/kafka/kafka_renewal.h"

/* For the layers of a client: a consumer takes the first one only. */
static struct kafka_property tls_property[2] = { { "ssl.endpoint.identification.algorithm", "none" },
                                                 { "partitioner", "consistent" } };

/* Make it usable or not, and have all clients opened again. */
static inline void tls_property_renew(bool is_usable)
{
  kafka_renewal_lock();
  tls_property[0].value = is_usable ? "none" : "no such algorithm";
  kafka_renewal_unlock();
  kafka_renewal_begin();
}

#endif
