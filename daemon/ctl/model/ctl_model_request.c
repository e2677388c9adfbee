/* SPDX-License-Identifier: Apache-2.0 */
/* The options of sluicectl model, and what its verbs share. */
#include "daemon/ctl/model/ctl_model_request.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/model/ctl_model_topic.h"

enum { TIMEOUT_S_MAX = 1000000 };

/* ---- Parsing ---- */

static err_t parse_percent(const char *text, double *out)
{
  char *end;

  *out = strtod(text, &end);
  if (end == text || *end != '\0' || !(*out >= 0 && *out <= 100))
    FAIL(ERR_USAGE, "--min-coverage expects a percentage from 0 to 100, not %s", text);
  return ERR_OK;
}

static err_t parse_share(struct ctl_model_request *r, const char *text)
{
  char *end;

  r->has_share = true;
  r->share = strtod(text, &end);
  if (end == text || *end != '\0' || !(r->share >= 0 && r->share <= 1))
    FAIL(ERR_USAGE, "--share expects a share of the queries from 0 to 1, such as 0.05, not %s", text);
  return ERR_OK;
}

static err_t parse_number(struct ctl_model_request *r, int option)
{
  switch (option) {
  case 'g':
    return ctl_parse_number("--generation", optarg, 2, SPACE_GENERATION_MAX, &r->generation);
  case 'd':
    r->is_derived = true;
    return optarg ? ctl_parse_number("--derive", optarg, 1, SPACE_GENERATION_MAX, &r->derived_from) : ERR_OK;
  case 'c':
    return parse_percent(optarg, &r->min_coverage);
  case 's':
    return parse_share(r, optarg);
  default:
    r->has_timeout = true;
    return ctl_parse_number("--timeout-s", optarg, 1, TIMEOUT_S_MAX, &r->timeout_s);
  }
}

static err_t parse_option(struct ctl_model_request *r, int option, char **argv)
{
  switch (option) {
  case 'f':
    r->file = optarg;
    return ERR_OK;
  case 'p':
    r->path = optarg;
    return ERR_OK;
  case 'u':
    r->uploads = true;
    return ERR_OK;
  case 'F':
    r->is_forced = true;
    return ERR_OK;
  case 'j':
    r->prints_json = true;
    return ERR_OK;
  case 'a':
    return ctl_model_daemons_add(&r->daemons, optarg);
  case '?':
  case ':':
    FAIL(ERR_USAGE, "%s: unknown option of model, or its value is missing", argv[optind - 1]);
  default:
    return parse_number(r, option);
  }
}

err_t ctl_model_request_parse(struct ctl_model_request *r, int argc, char **argv)
{
  static const struct option known[] = {
    { "generation", required_argument, NULL, 'g' },
    { "file", required_argument, NULL, 'f' },
    { "path", required_argument, NULL, 'p' },
    { "derive", optional_argument, NULL, 'd' },
    { "upload", no_argument, NULL, 'u' },
    { "min-coverage", required_argument, NULL, 'c' },
    { "force", no_argument, NULL, 'F' },
    { "share", required_argument, NULL, 's' },
    { "at-least", required_argument, NULL, 'a' },
    { "json", no_argument, NULL, 'j' },
    { "timeout-s", required_argument, NULL, 't' },
    { 0 },
  };
  int option;

  while ((option = getopt_long(argc, argv, ":", known, NULL)) != -1)
    TRY(parse_option(r, option, argv));
  return ERR_OK;
}

/* ---- For the verbs ---- */

err_t ctl_model_request_verify_space(const struct ctl_model_request *r)
{
  for (size_t i = 0; i < r->ctx->config->n_spaces; i++) {
    if (strcmp(r->ctx->config->spaces[i].name, r->space) == 0)
      return ERR_OK;
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
