/* SPDX-License-Identifier: Apache-2.0 */
/* The options of sluicectl model, and what its verbs share. */
#include "daemon/ctl/model/ctl_model_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/model/ctl_model_topic.h"

enum { TIMEOUT_S_MAX = 1000000 };

/* ---- Parsing ---- */

static err_t take_coverage(void *request, const char *text)
{
  struct ctl_model_request *r = request;
  char *end;

  r->min_coverage = strtod(text, &end);
  if (end == text || *end != '\0' || !(r->min_coverage >= 0 && r->min_coverage <= 100))
    FAIL(ERR_USAGE, "--min-coverage expects a percentage from 0 to 100, not %s", text);
  return ERR_OK;
}

static err_t take_share(void *request, const char *text)
{
  struct ctl_model_request *r = request;
  char *end;

  r->share = strtod(text, &end);
  if (end == text || *end != '\0' || !(r->share >= 0 && r->share <= 1))
    FAIL(ERR_USAGE, "--share expects a share of the queries from 0 to 1, such as 0.05, not %s", text);
  return ERR_OK;
}

static err_t add_daemon(void *daemons, const char *address)
{
  return ctl_model_daemons_add(daemons, address);
}

err_t ctl_model_request_parse(struct ctl_model_request *r, int argc, char **argv)
{
  const struct ctl_option known[] = {
    { "generation", .number = &r->generation, .min = 2, .max = SPACE_GENERATION_MAX },
    { "file", .text = &r->file },
    { "path", .text = &r->path },
    { "derive", .is_given = &r->is_derived, .number = &r->derived_from, .min = 1, .max = SPACE_GENERATION_MAX,
      .may_be_bare = true },
    { "upload", .is_given = &r->uploads },
    { "min-coverage", .take = take_coverage, .context = r },
    { "force", .is_given = &r->is_forced },
    { "share", .is_given = &r->has_share, .take = take_share, .context = r },
    { "at-least", .take = add_daemon, .context = &r->daemons },
    { "json", .is_given = &r->prints_json },
    { "timeout-s", .is_given = &r->has_timeout, .number = &r->timeout_s, .min = 1, .max = TIMEOUT_S_MAX },
    { 0 },
  };

  return ctl_option_take(known, NULL, argc, argv);
}

/* ---- For the verbs ---- */

err_t ctl_model_request_verify(struct ctl_model_request *r)
{
  for (size_t i = 0; i < r->ctx->config->n_spaces; i++) {
    if (strcmp(r->ctx->config->spaces[i].name, r->space) == 0)
      return ctl_model_daemons_verify_named(&r->daemons);
  }
  FAIL(ERR_USAGE, "the configuration has no space %s: it needs a first model", r->space);
}

struct span ctl_model_request_space(const struct ctl_model_request *r)
{
  return span_of_str(r->space);
}

uint32_t ctl_model_request_wanted(const struct ctl_model_request *r)
{
  return model_state_at(&r->state, ctl_model_request_space(r), INT64_MAX);
}

static err_code_t note_row(void *context, const char *daemon, const json_t *row)
{
  struct ctl_model_request *r = context;
  uint64_t number = ctl_json_count(row, "generation");

  (void)daemon;
  r->largest = number > r->largest ? number : r->largest;
  r->is_known |= number == r->generation;
  if (json_is_true(json_object_get(row, "current")))
    r->is_answering &= number == r->generation;
  return ERR_OK;
}

err_t ctl_model_request_ask(struct ctl_model_request *r)
{
  r->largest = 0;
  r->is_known = false;
  r->is_answering = true;
  return ctl_model_daemons_visit(&r->daemons, r->space, note_row, r);
}

err_t ctl_model_request_write(struct ctl_model_request *r, enum model_change_kind kind, struct model_change change)
{
  change.kind = kind;
  change.space = ctl_model_request_space(r);
  return ctl_model_topic_write(r->ctx, &change, &r->next);
}

err_t ctl_model_request_await(struct ctl_model_request *r, ctl_model_goal goal, int64_t timeout_s)
{
  return ctl_model_daemons_await(&r->daemons, r->space, (uint32_t)r->generation, goal, r, r->next, timeout_s * 1000);
}

err_code_t ctl_model_request_is_loaded(void *context, const json_t *row, bool *is_there,
                                       char reason[CTL_MODEL_REASON_BYTES])
{
  const struct ctl_model_request *r = context;
  const char *phase = json_string_value(json_object_get(row, "phase"));
  const char *problem = json_string_value(json_object_get(row, "problem"));

  const char *digest = json_string_value(json_object_get(row, "digest"));

  phase = phase ? phase : "not read yet";
  problem = problem ? problem : "";
  if (r->digest && digest && strcmp(digest, r->digest) != 0 && strcmp(phase, "ready") == 0)
    FAIL(ERR_SYSTEM, "%s@%" PRIu64 " is another model there, with the digest %s: add this one with another number",
         r->space, r->generation, digest);
  if (strcmp(phase, "failed") == 0)
    FAIL(ERR_SYSTEM, "%s@%" PRIu64 " cannot be used: %s", r->space, r->generation, problem);
  *is_there = strcmp(phase, "ready") == 0;
  snprintf(reason, CTL_MODEL_REASON_BYTES, "%s@%" PRIu64 " is not ready: %s%s%s", r->space, r->generation, phase,
           *problem ? ": " : "", problem);
  return ERR_OK;
}
