/* SPDX-License-Identifier: Apache-2.0 */
/* The metric with the labels `section` and `use`. The clients read certificates when they are opened, so a file that
 * has changed since does not count: it is read again when the clients are renewed. */
#include "daemon/http/sections/certificate_metrics.h"

#include <pthread.h>
#include <string.h>

#include "daemon/config/config_kafka.h"
#include "daemon/http/print/metric_print.h"
#include "ingest/kafka/certificate.h"
#include "ingest/kafka/kafka_renewal.h"

static const struct property {
  const char *name;
  const char *use;
  bool is_file;
  enum certificate_choice choice;
} properties[] = {
  { "ssl.certificate.location", "certificate", true, CERTIFICATE_FIRST_TO_EXPIRE },
  { "ssl.certificate.pem", "certificate", false, CERTIFICATE_FIRST_TO_EXPIRE },
  { "ssl.ca.location", "authority", true, CERTIFICATE_LAST_TO_EXPIRE },
  { "ssl.ca.pem", "authority", false, CERTIFICATE_LAST_TO_EXPIRE },
};
enum { N_PROPERTIES = sizeof properties / sizeof properties[0] };

static struct {
  pthread_mutex_t mutex;
  bool is_read;
  uint64_t version; /* of the renewal that they were read at */
  int64_t expiry[CONFIG_KAFKA_SECTIONS][N_PROPERTIES];
} known = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int64_t read_expiry(const struct property *property, const char *value)
{
  return property->is_file ? certificate_expiry_in_file(value, property->choice)
                           : certificate_expiry_in_text(span_of_str(value), property->choice);
}

static void read_section(const struct kafka_properties *section, int64_t *expiry)
{
  memset(expiry, 0, N_PROPERTIES * sizeof *expiry);
  for (size_t i = 0; i < section->n; i++) {
    for (size_t p = 0; p < N_PROPERTIES; p++) {
      if (strcmp(section->items[i].name, properties[p].name) == 0)
        expiry[p] = read_expiry(&properties[p], section->items[i].value);
    }
  }
}

/* The lock keeps a reload from replacing the values meanwhile. */
static void read_all(const struct config *c)
{
  kafka_renewal_lock();
  known.version = kafka_renewal_version();
  for (size_t s = 0; s < CONFIG_KAFKA_SECTIONS; s++)
    read_section(config_kafka_properties(c, s), known.expiry[s]);
  kafka_renewal_unlock();
  known.is_read = true;
}

void certificate_metrics_print(const struct config *config, FILE *out)
{
  static const char name[] = "sluice_certificate_expiry_timestamp_seconds";

  metric_print_head(out, name, "gauge", "When a certificate of the Kafka clients expires, in seconds since 1970");
  pthread_mutex_lock(&known.mutex);
  if (!known.is_read || known.version != kafka_renewal_version())
    read_all(config);
  for (size_t s = 0; s < CONFIG_KAFKA_SECTIONS; s++) {
    for (size_t p = 0; p < N_PROPERTIES; p++) {
      struct metric_labels labels = { { { "section", config_kafka_sections[s].path }, { "use", properties[p].use } } };
      if (known.expiry[s][p])
        metric_print_real(out, name, &labels, (double)known.expiry[s][p]);
    }
  }
  pthread_mutex_unlock(&known.mutex);
}
