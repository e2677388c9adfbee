/* SPDX-License-Identifier: Apache-2.0 */
/* A generation's record, written again with another share. */
#include "daemon/ctl/model/ctl_model_shadow.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/ctl/model/ctl_model_topic.h"

/* A record has nine digits of a share. */
#define SHARE_ACCURACY 1e-8

/* Has the daemon read the share? */
static err_code_t has_asked_share(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  struct ctl_model_request *r = context;
  const json_t *shadow = json_object_get(row, "shadow");
  const char *problem = json_string_value(json_object_get(shadow, "problem"));
  double difference = json_number_value(json_object_get(shadow, "share")) - r->share;

  *is_there = difference < SHARE_ACCURACY && difference > -SHARE_ACCURACY;
  snprintf(reason, CTL_MODEL_REASON_BYTES, "%s@%" PRIu64 " has another share", r->space, r->generation);
  snprintf(r->problem, sizeof r->problem, "%s", problem ? problem : "");
  return ERR_OK;
}

static err_t verify_added(const struct ctl_model_request *r, const struct model_generation *known)
{
  if (r->generation == 1)
    FAIL(ERR_USAGE,
         "%s@1 is the model of the configuration: only an added generation can be compared with the current "
         "one",
         r->space);
  if (!known || known->is_retired)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " %s", r->space, r->generation, known ? "was retired" : "is not there: add it first");
  return ERR_OK;
}

static void say_compared(const struct ctl_model_request *r)
{
  if (r->share > 0)
    printf("%s@%" PRIu64 " is compared for %g %% of the queries\n", r->space, r->generation, 100 * r->share);
  else
    printf("%s@%" PRIu64 " is compared no more\n", r->space, r->generation);
  if (*r->problem)
    printf("nothing is compared now: %s\n", r->problem);
}

/* The record is written again as it is, with another share. */
err_t ctl_model_shadow(struct ctl_model_request *r)
{
  if (!r->has_share)
    FAIL(ERR_USAGE, "model shadow expects --share");
  TRY(ctl_model_request_verify(r));
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  const struct model_space *space = model_state_find(&r->state, ctl_model_request_space(r));
  const struct model_generation *known = model_state_generation(space, (uint32_t)r->generation);
  TRY(verify_added(r, known));
  struct model_change change = model_state_record(space, known);
  change.shadow = r->share;
  TRY(ctl_model_request_write(r, MODEL_ADD, change));
  TRY(ctl_model_request_await(r, has_asked_share, (int64_t)r->timeout_s));
  say_compared(r);
  return ERR_OK;
}
