/* SPDX-License-Identifier: Apache-2.0 */
/* Compare the configuration file with the running configuration, log the differences, and apply log.level. */
#include "daemon/reload.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_BYTES = 480 };

/* The only setting that can change in a running daemon: no other thread reads it from the configuration. */
static const char reloadable[] = "log.level";

struct changes {
  char changed[NAMES_BYTES];
  char needs_restart[NAMES_BYTES];
};

static void append(char *names, const char *name)
{
  size_t n = strlen(names);

  snprintf(names + n, NAMES_BYTES - n, "%s%s", n ? " " : "", name);
}

static void note(void *context, const char *setting)
{
  struct changes *c = context;

  if (strcmp(setting, reloadable) != 0)
    append(c->needs_restart, setting);
}

static void refuse(const char *path, const struct problems *problems)
{
  for (size_t i = 0; i < problems->n; i++)
    log_error("reload_refused", "problem=%s", log_quote(span_of_str(problems->items[i])));
  log_error("reload_refused", "config=%s problems=%zu note=\"nothing has changed\"", path,
            problems->n + problems->n_more);
}

static void apply(struct config *running, const struct config *newer)
{
  struct changes c = { "", "" };

  config_compare(running, newer, note, &c);
  if (running->log_level != newer->log_level)
    append(c.changed, reloadable);
  /* the event must be logged, whatever the new level is */
  log_set_level(newer->log_level > LOG_LEVEL_INFO ? newer->log_level : LOG_LEVEL_INFO);
  log_info("reloaded", "config=%s changed=%s needs_restart=%s", running->path, log_quote(span_of_str(c.changed)),
           log_quote(span_of_str(c.needs_restart)));
  running->log_level = newer->log_level;
  log_set_level(newer->log_level);
}

void reload(struct config *running)
{
  AUTO(problems_fini) struct problems problems = { 0 };
  AUTO(config_close) struct config *newer = NULL;
  err_code_t err = config_read(running->path, &problems, &newer);

  if (err != ERR_OK)
    err = problems_add(&problems);
  if (err != ERR_OK || problems.n)
    refuse(running->path, &problems);
  else
    apply(running, newer);
}
