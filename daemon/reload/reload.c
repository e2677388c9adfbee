/* SPDX-License-Identifier: Apache-2.0 */
/* Compare the configuration file with the running configuration, apply what a running daemon can change, and log the
 * differences. */
#include "daemon/reload/reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "daemon/reload/certificates.h"
#include "daemon/reload/credentials.h"
#include "daemon/reload/registry_login.h"
#include "daemon/setup/check.h"

enum { NAMES_BYTES = 480 };

/* Numbers that their threads read with config_number() each time they use them. */
static const struct {
  const char *setting;
  size_t offset;
} numbers[] = {
  { "catalogue.publish_interval_ms", offsetof(struct config, catalogue.publish_interval_ms) },
  { "catalogue.rebuild_min_percent", offsetof(struct config, catalogue.rebuild_min_percent) },
  { "query.at_least_timeout_ms", offsetof(struct config, query.at_least_timeout_ms) },
};

struct changes {
  struct config *running;
  const struct config *newer;
  bool can_change_credentials, can_change_registry;
  char changed[NAMES_BYTES];
  char needs_restart[NAMES_BYTES];
};

static void append(char *names, const char *name)
{
  size_t n = strlen(names);

  snprintf(names + n, NAMES_BYTES - n, "%s%s", n ? " " : "", name);
}

static bool apply_number(struct changes *c, const char *setting)
{
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (strcmp(setting, numbers[i].setting) == 0) {
      const uint64_t *from = (const void *)((const char *)c->newer + numbers[i].offset);
      uint64_t *to = (void *)((char *)c->running + numbers[i].offset);
      __atomic_store_n(to, *from, __ATOMIC_RELAXED);
      return true;
    }
  }
  return false;
}

static bool is_kafka_map(const char *setting)
{
  const char *dot = strrchr(setting, '.');

  return strcmp(setting, "kafka") == 0 || (dot && strstr(dot, "kafka"));
}

/* A setting differs from the running one. If a Kafka map may differ, it does so in credentials only. The log level is
 * not compared here: its word in the running configuration is that of the start. */
static void note(void *context, const char *setting)
{
  struct changes *c = context;

  if (strcmp(setting, "log.level") == 0)
    return;
  if (apply_number(c, setting))
    append(c->changed, setting);
  else if (!(is_kafka_map(setting) && c->can_change_credentials) &&
           !(registry_login_has(setting) && c->can_change_registry))
    append(c->needs_restart, setting);
}

static void refuse(const char *path, const struct problems *problems)
{
  for (size_t i = 0; i < problems->n; i++)
    log_error("reload_refused", "problem=%s", log_quote(span_of_str(problems->items[i])));
  log_error("reload_refused", "config=%s problems=%zu note=\"nothing has changed\"", path,
            problems->n + problems->n_more);
}

/* The clients use texts of the configuration that has their credentials, so it is kept. */
static void keep(struct reload *r, struct config **newer)
{
  config_close(&r->latest);
  r->latest = *newer;
  *newer = NULL;
}

static bool are_certificates_changed(const struct reload *r, const struct config *newer)
{
  return credentials_can_change(r->running, newer) && certificates_digest(newer) != r->certificates;
}

static void apply_certificates(struct reload *r, const struct config *newer, struct changes *c)
{
  uint64_t digest = certificates_digest(newer);

  if (digest == r->certificates)
    return;
  certificates_renew(r->running, newer);
  r->certificates = digest;
  append(c->changed, "certificates");
}

static bool is_registry_changed(const struct reload *r, const struct config *newer)
{
  return registry_login_can_change(r->running, newer) && registry_login_digest(newer) != r->registry;
}

/* The registry's client knows it already. */
static void note_registry(struct reload *r, const struct config *newer, struct changes *c)
{
  if (!is_registry_changed(r, newer))
    return;
  r->registry = registry_login_digest(newer);
  append(c->changed, "catalogue.registry");
}

static void apply(struct reload *r, struct config **newer)
{
  struct changes c = { .running = r->running, .newer = *newer };
  enum log_level level = (*newer)->log_level;

  if (r->running->log_level != level)
    append(c.changed, "log.level");
  c.can_change_credentials = credentials_can_change(r->running, *newer);
  c.can_change_registry = registry_login_can_change(r->running, *newer);
  config_compare(r->running, *newer, note, &c);
  note_registry(r, *newer, &c);
  if (c.can_change_credentials) {
    if (credentials_change(r->running, r->latest ? r->latest : r->running, *newer))
      append(c.changed, "credentials");
    apply_certificates(r, *newer, &c);
    keep(r, newer);
  }
  /* the event must be logged, whatever the new level is */
  log_set_level(level > LOG_LEVEL_INFO ? level : LOG_LEVEL_INFO);
  log_info("reloaded", "config=%s changed=%s needs_restart=%s", r->running->path, log_quote(span_of_str(c.changed)),
           log_quote(span_of_str(c.needs_restart)));
  log_set_level(level);
  r->running->log_level = level;
}

void reload(struct reload *r)
{
  AUTO(problems_fini) struct problems problems = { 0 };
  AUTO(config_close) struct config *newer = NULL;
  err_code_t err = config_read_again(r->running->path, &problems, &newer);

  /* a key that does not fit its certificate would end the daemon */
  if (err == ERR_OK && problems.n == 0 && are_certificates_changed(r, newer))
    err = check_clients(newer, &problems);
  if (err == ERR_OK && problems.n == 0 && is_registry_changed(r, newer))
    err = registry_login_change(newer);
  if (err != ERR_OK)
    err = problems_add(&problems);
  if (err != ERR_OK || problems.n)
    refuse(r->running->path, &problems);
  else
    apply(r, &newer);
}

void reload_init(struct config *running, struct reload *out)
{
  *out = (struct reload){ .running = running,
                          .certificates = certificates_digest(running),
                          .registry = registry_login_digest(running) };
}

void reload_fini(struct reload *r)
{
  config_close(&r->latest);
}

void reload_and_notify(struct reload *r, bool was_ready)
{
  if (was_ready)
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_now_ns() / CLOCK_NS_PER_US);
  reload(r);
  if (was_ready)
    sd_notify(0, "READY=1");
}
