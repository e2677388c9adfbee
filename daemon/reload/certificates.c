/* SPDX-License-Identifier: Apache-2.0 */
/* Recognise that a certificate has changed, also in a file of the same name, and replace it. */
#include "daemon/reload/certificates.h"

#include <string.h>

#include "daemon/config/config_kafka.h"
#include "daemon/reload/digest.h"
#include "ingest/kafka/kafka_renewal.h"

static bool is_file(const char *property)
{
  const char *dot = strrchr(property, '.');

  return dot && strcmp(dot, ".location") == 0;
}

uint64_t certificates_digest(const struct config *c)
{
  uint64_t digest = 0;

  for (size_t s = 0; s < CONFIG_KAFKA_SECTIONS; s++) {
    const struct kafka_properties *section = config_kafka_properties(c, s);
    for (size_t i = 0; i < section->n; i++) {
      const struct kafka_property *p = &section->items[i];
      if (!kafka_renewal_is_about(p->name))
        continue;
      digest = digest_text(digest, p->name);
      digest = digest_text(digest, p->value);
      if (is_file(p->name))
        digest = digest_file(digest, p->value);
    }
  }
  return digest;
}

void certificates_renew(const struct config *running, const struct config *newer)
{
  kafka_renewal_lock();
  for (size_t s = 0; s < CONFIG_KAFKA_SECTIONS; s++)
    kafka_renewal_swap(config_kafka_properties(running, s), config_kafka_properties(newer, s));
  kafka_renewal_unlock();
  kafka_renewal_begin();
}
