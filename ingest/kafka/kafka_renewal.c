/* SPDX-License-Identifier: Apache-2.0 */
/* The version, and a lock around the properties: a client must not get a new certificate with a former key. */
#include "ingest/kafka/kafka_renewal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "ingest/kafka/kafka_trouble.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t version;

void kafka_renewal_lock(void)
{
  pthread_mutex_lock(&mutex);
}

void kafka_renewal_unlock(void)
{
  pthread_mutex_unlock(&mutex);
}

bool kafka_renewal_is_about(const char *property)
{
  return strncmp(property, "ssl.", 4) == 0;
}

void kafka_renewal_swap(const struct kafka_properties *running, const struct kafka_properties *newer)
{
  struct kafka_property *a = (struct kafka_property *)(uintptr_t)running->items; /* their owner may change them */
  struct kafka_property *b = (struct kafka_property *)(uintptr_t)newer->items;

  for (size_t i = 0; i < running->n; i++) {
    if (!kafka_renewal_is_about(a[i].name))
      continue;
    const char *value = a[i].value;
    a[i].value = b[i].value;
    b[i].value = value;
  }
}

void kafka_renewal_begin(void)
{
  kafka_trouble_forget();
  atomic_fetch_add(&version, 1);
}

uint64_t kafka_renewal_version(void)
{
  return atomic_load(&version);
}
