/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that change while clients are open. librdkafka reads them when a client is opened, so each owner of a
 * client opens another one when the version has risen, and closes the former one. Passwords need no new client
 * (kafka_credentials.h). Thread: any. */
#ifndef INGEST_KAFKA_RENEWAL_H
#define INGEST_KAFKA_RENEWAL_H

#include <stdint.h>

#include "ingest/kafka/kafka_properties.h"

/* Keep the values of properties from being replaced. Making a client configuration does so by itself. */
void kafka_renewal_lock(void);
void kafka_renewal_unlock(void);

/* Is it a property of certificates, keys and encryption? Its value may be replaced. */
bool kafka_renewal_is_about(const char *property);

/* Exchange the values of such properties between two lists that have the same names in the same order. The owner of
 * the lists calls this, and has locked. */
void kafka_renewal_swap(const struct kafka_properties *running, const struct kafka_properties *newer);

/* Raise the version: clients that are open have older certificates. */
void kafka_renewal_begin(void);
uint64_t kafka_renewal_version(void);

#endif
