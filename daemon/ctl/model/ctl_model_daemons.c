/* SPDX-License-Identifier: Apache-2.0 */
/* Asking daemons again and again, until all have got where one wants them. */
#include "daemon/ctl/model/ctl_model_daemons.h"

#include <stdio.h>

#include "base/clock.h"
#include "daemon/ctl/text/ctl_say.h"

enum { PERIOD_MS = 50, SAY_EVERY_MS = 1000 };

err_t ctl_model_daemons_add(struct ctl_model_daemons *d, const char *address)
{
  static const char scheme[] = "http://";

  if (d->n == CTL_MODEL_DAEMONS_MAX)
    FAIL(ERR_USAGE, "more than %d daemons", CTL_MODEL_DAEMONS_MAX);
  if (strncmp(address, scheme, sizeof scheme - 1) == 0)
    address += sizeof scheme - 1;
  TRY(http_get_open(address, &d->http[d->n]));
  d->n++;
  return ERR_OK;
}

void ctl_model_daemons_fini(struct ctl_model_daemons *d)
{
  for (size_t i = 0; i < d->n; i++)
    http_get_close(&d->http[i]);
  d->n = 0;
}

err_t ctl_model_daemons_ask(struct http_get *http, json_t **out)
{
  AUTO(ctl_json_close) json_t *status = NULL;

  TRY(http_get_status(http, &status));
  json_t *models = json_object_get(status, "models");
  if (!json_is_object(models))
    FAIL(ERR_SYSTEM,
         "the daemon at %s has no models.topic: name the topic that controls generations of models, here and for the "
         "daemon: `models: {topic: sluice.models}`",
         http_get_base(http));
  *out = json_incref(models);
  return ERR_OK;
}

err_t ctl_model_daemons_verify_named(struct ctl_model_daemons *d)
{
  for (size_t i = 0; i + 1 < d->n; i++) {
    AUTO(ctl_json_close) json_t *models = NULL;
    TRY(ctl_model_daemons_ask(d->http[i], &models));
  }
  return ERR_OK;
}

static bool is_of_space(const json_t *row, const char *space)
{
  const char *name = json_string_value(json_object_get(row, "space"));

  return name && strcmp(name, space) == 0;
}

const json_t *ctl_model_daemons_find(const json_t *models, const char *space, uint32_t generation)
{
  const json_t *row;
  size_t i;

  json_array_foreach(json_object_get(models, "generations"), i, row)
  {
    if (is_of_space(row, space) && ctl_json_count(row, "generation") == generation)
      return row;
  }
  return NULL;
}

/* One that does not answer is left out: who waits for it afterwards learns that. */
static err_t visit_one(struct http_get *http, const char *space, ctl_model_visit visit, void *context)
{
  AUTO(ctl_json_close) json_t *models = NULL;
  const json_t *row;
  size_t i;

  if (ctl_model_daemons_ask(http, &models) != ERR_OK)
    return ERR_OK;
  json_array_foreach(json_object_get(models, "generations"), i, row)
  {
    if (is_of_space(row, space))
      TRY(visit(context, http_get_base(http), row));
  }
  return ERR_OK;
}

err_t ctl_model_daemons_visit(struct ctl_model_daemons *d, const char *space, ctl_model_visit visit, void *context)
{
  for (size_t i = 0; i < d->n; i++)
    TRY(visit_one(d->http[i], space, visit, context));
  return ERR_OK;
}

/* What is waited for. */
struct wait {
  const char *space;
  uint32_t generation;
  ctl_model_goal goal;
  void *context;
  int64_t next;
  int64_t until_ns;
};

static err_t look_for_goal(const json_t *models, const struct wait *w, bool *is_there,
                           char reason[CTL_MODEL_REASON_BYTES])
{
  const char *problem = json_string_value(json_object_get(models, "problem"));

  if (json_integer_value(json_object_get(models, "next")) >= w->next)
    return w->goal(w->context, ctl_model_daemons_find(models, w->space, w->generation), is_there, reason);
  *is_there = false;
  snprintf(reason, CTL_MODEL_REASON_BYTES, "it has not read the record%s%s", problem ? ": " : "",
           problem ? problem : "");
  return ERR_OK;
}

/* Ask a daemon how far it is. One that has answered may be away for a while: it may be starting again.
 *
 * reason  what is missing, whole: it names the daemon
 */
static err_t ask_for_goal(struct http_get *http, const struct wait *w, bool *has_answered, bool *is_there,
                          char reason[CTL_MODEL_REASON_BYTES])
{
  AUTO(ctl_json_close) json_t *models = NULL;
  char missing[CTL_MODEL_REASON_BYTES] = "";

  *is_there = false;
  err_code_t err = ctl_model_daemons_ask(http, &models);
  if (err != ERR_OK && !*has_answered)
    return err;
  if (err != ERR_OK) {
    snprintf(reason, CTL_MODEL_REASON_BYTES, "%s", err_message());
    return ERR_OK;
  }
  *has_answered = true;
  TRY(look_for_goal(models, w, is_there, missing));
  snprintf(reason, CTL_MODEL_REASON_BYTES, "the daemon at %s: %.900s", http_get_base(http), missing);
  return ERR_OK;
}

/* What was said last about a wait. */
struct said {
  char reason[CTL_MODEL_REASON_BYTES];
  int64_t at_ns;
};

/* Say what is missing, when that has changed. Most waits are over before the first line, and a coverage that rises
 * would fill the terminal. */
static void say_missing(struct said *said, const char reason[CTL_MODEL_REASON_BYTES])
{
  int64_t now_ns = clock_now_ns();

  if (now_ns - said->at_ns < SAY_EVERY_MS * CLOCK_NS_PER_MS || strcmp(reason, said->reason) == 0)
    return;
  said->at_ns = now_ns;
  ctl_say("waiting: %s", strcpy(said->reason, reason));
}

/* Wait for one daemon. */
static err_t await_one(struct http_get *http, const struct wait *w)
{
  char reason[CTL_MODEL_REASON_BYTES] = "";
  struct said said = { .at_ns = clock_now_ns() };
  bool has_answered = false, is_there = false;

  for (;;) {
    TRY(ask_for_goal(http, w, &has_answered, &is_there, reason));
    if (is_there)
      return ERR_OK;
    if (clock_now_ns() >= w->until_ns)
      FAIL(ERR_SYSTEM, "%s", reason);
    say_missing(&said, reason);
    clock_sleep_ns(PERIOD_MS * CLOCK_NS_PER_MS);
  }
}

err_t ctl_model_daemons_await(struct ctl_model_daemons *d, const char *space, uint32_t generation, ctl_model_goal goal,
                              void *context, int64_t next, int64_t timeout_ms)
{
  const struct wait w = {
    space, generation, goal, context, next, clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS,
  };

  for (size_t i = 0; i < d->n; i++)
    TRY(await_one(d->http[i], &w));
  return ERR_OK;
}
