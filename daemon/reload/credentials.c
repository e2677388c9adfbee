/* SPDX-License-Identifier: Apache-2.0 */
/* Find the credentials of each kind of client in two configurations, and replace those that differ. */
#include "daemon/reload/credentials.h"

#include <string.h>

#include "daemon/config/config_kafka.h"
#include "ingest/kafka/kafka_credentials.h"

/* The kinds of clients. */
enum { N_ROLES = CONFIG_KAFKA_SECTIONS - CONFIG_KAFKA_CLIENTS };

static const struct kafka_properties *own_of(const struct config *c, int role)
{
  return config_kafka_properties(c, CONFIG_KAFKA_CLIENTS + (size_t)role);
}

static void read_properties(const struct kafka_properties *properties, struct kafka_credentials *out)
{
  for (size_t i = 0; i < properties->n; i++) {
    if (strcmp(properties->items[i].name, "sasl.username") == 0)
      out->user = properties->items[i].value;
    if (strcmp(properties->items[i].name, "sasl.password") == 0)
      out->password = properties->items[i].value;
  }
}

/* Return the credentials of a kind of client; "" where there are none. */
static struct kafka_credentials credentials_of(const struct config *c, int role)
{
  struct kafka_credentials credentials = { "", "" };

  read_properties(&c->kafka, &credentials);
  read_properties(own_of(c, role), &credentials);
  return credentials;
}

static bool is_same(const struct kafka_credentials *a, const struct kafka_credentials *b)
{
  return strcmp(a->user, b->user) == 0 && strcmp(a->password, b->password) == 0;
}

/* Clients are told apart by the credentials that they were opened with. So those that shared them must go on to. */
static bool are_shared_alike(const struct config *running, const struct config *newer)
{
  struct kafka_credentials was[N_ROLES], now[N_ROLES];

  for (int i = 0; i < N_ROLES; i++) {
    was[i] = credentials_of(running, i);
    now[i] = credentials_of(newer, i);
    for (int j = 0; j < i; j++) {
      if (is_same(&was[i], &was[j]) && !is_same(&now[i], &now[j]))
        return false;
    }
  }
  return true;
}

bool credentials_can_change(const struct config *running, const struct config *newer)
{
  bool can = config_differs_in_credentials_at_most(&running->kafka, &newer->kafka) && are_shared_alike(running, newer);

  for (int i = 0; i < N_ROLES; i++)
    can = can && config_differs_in_credentials_at_most(own_of(running, i), own_of(newer, i));
  return can;
}

bool credentials_change(const struct config *running, const struct config *latest, const struct config *newer)
{
  bool has_changed = false;

  for (int i = 0; i < N_ROLES; i++) {
    struct kafka_credentials was = credentials_of(running, i), used = credentials_of(latest, i),
                             now = credentials_of(newer, i);
    has_changed |= !is_same(&used, &now);
    if (*was.user)
      kafka_credentials_replace(&was, &now);
  }
  return has_changed;
}
