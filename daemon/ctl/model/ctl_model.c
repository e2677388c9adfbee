/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl model: its verbs, of which list, switch and retire are here. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/config/config_shard.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/model/ctl_model_add.h"
#include "daemon/ctl/model/ctl_model_files.h"
#include "daemon/ctl/model/ctl_model_list.h"
#include "daemon/ctl/model/ctl_model_shadow.h"
#include "daemon/ctl/model/ctl_model_topic.h"

/* Shards switch from a time a little ahead on: until then all should have read the switch. */
enum { TIMEOUT_S_DEFAULT = 60, SWITCH_AHEAD_MS = 800 };

#define COVERAGE_DEFAULT 99.9

/* ---- list, status ---- */

static err_t print_json(const json_t *models)
{
  if (json_dumpf(models, stdout, JSON_COMPACT) != 0)
    FAIL(ERR_SYSTEM, "the generations cannot be written");
  putchar('\n');
  return ERR_OK;
}

static err_t run_list(struct ctl_model_request *r)
{
  for (size_t i = 0; i < r->daemons.n; i++) {
    AUTO(ctl_json_close) json_t *models = NULL;
    TRY(ctl_model_daemons_ask(r->daemons.http[i], &models));
    if (r->prints_json) {
      TRY(print_json(models));
      continue;
    }
    if (r->daemons.n > 1)
      printf("%s%s\n", i ? "\n" : "", http_get_base(r->daemons.http[i]));
    TRY(ctl_model_list_print(models, r->space, stdout));
  }
  return ERR_OK;
}

/* ---- switch ---- */

/* Would a daemon that switches now have something to answer with? */
static err_code_t is_covered(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  const struct ctl_model_request *r = context;
  double coverage = 100 * json_number_value(json_object_get(row, "coverage"));

  TRY(ctl_model_request_is_loaded(context, row, is_there, reason));
  if (!*is_there || r->is_forced || coverage >= r->min_coverage)
    return ERR_OK;
  *is_there = false;
  snprintf(reason, CTL_MODEL_REASON_BYTES,
           "%s@%" PRIu64 " has %.3f %% of the items that the current generation has (%" PRIu64
           " are missing), less than %g %%: write the others, or use --force",
           r->space, r->generation, coverage, ctl_json_count(row, "missing_items"), r->min_coverage);
  return ERR_OK;
}

/* Shards wait before they switch, not one by one. An index is built by itself once nearly all parts are there. */
static err_code_t is_indexed(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  const struct ctl_model_request *r = context;
  bool is_coming = 100 * json_number_value(json_object_get(row, "coverage")) >= COVERAGE_DEFAULT;

  *is_there = !json_is_false(json_object_get(row, "indexed")) || !is_coming;
  snprintf(reason, CTL_MODEL_REASON_BYTES, "the index of %s@%" PRIu64 " is not built yet", r->space, r->generation);
  return ERR_OK;
}

static err_code_t is_current(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  const struct ctl_model_request *r = context;

  *is_there = json_is_true(json_object_get(row, "current"));
  snprintf(reason, CTL_MODEL_REASON_BYTES, "%s@%" PRIu64 " does not answer yet", r->space, r->generation);
  return ERR_OK;
}

/* Append to the history; the oldest switch falls out if there is no room. The same switch is not appended twice. */
static size_t append_switch(const struct ctl_model_request *r, struct model_switch history[MODEL_SWITCHES_MAX])
{
  const struct model_space *said = model_state_find(&r->state, ctl_model_request_space(r));
  size_t n = said ? said->n_switches : 0, n_dropped = n == MODEL_SWITCHES_MAX;
  int64_t at_ms = clock_unix_ms() + (config_is_shard(r->ctx->config) ? SWITCH_AHEAD_MS : 0);

  if (n && said->switches[n - 1].to == r->generation) {
    memcpy(history, said->switches, n * sizeof *history);
    return n;
  }
  n -= n_dropped;
  if (n)
    memcpy(history, said->switches + n_dropped, n * sizeof *history);
  if (n && history[n - 1].at_ms > at_ms) /* its writer's clock was ahead */
    at_ms = history[n - 1].at_ms;
  history[n] = (struct model_switch){ (uint32_t)r->generation, at_ms };
  return n + 1;
}

/* Wait until the time of the switch; not for one whose writer's clock was ahead. */
static void await_time(const struct model_switch *last)
{
  int64_t left_ms = last->at_ms - clock_unix_ms();

  if (left_ms > 0 && left_ms <= SWITCH_AHEAD_MS)
    clock_sleep_ns(left_ms * CLOCK_NS_PER_MS);
}

/* A number that neither a daemon nor the control topic has is a mistake: there is nothing to wait for. */
static err_t verify_there(struct ctl_model_request *r)
{
  TRY(ctl_model_request_ask(r));
  if (r->is_known)
    return ERR_OK;
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  bool is_added =
      model_state_generation(model_state_find(&r->state, ctl_model_request_space(r)), (uint32_t)r->generation) != NULL;
  model_state_fini(&r->state);
  if (r->generation > 1 && !is_added)
    FAIL(ERR_USAGE, "there is no %s@%" PRIu64 ": add it first", r->space, r->generation);
  return ERR_OK;
}

static err_t run_switch(struct ctl_model_request *r)
{
  struct model_switch history[MODEL_SWITCHES_MAX];
  size_t n = 0;

  TRY(ctl_model_request_verify(r));
  TRY(verify_there(r));
  TRY(ctl_model_request_await(r, is_covered, r->has_timeout ? (int64_t)r->timeout_s : 0));
  if (config_is_shard(r->ctx->config))
    TRY(ctl_model_request_await(r, is_indexed, (int64_t)r->timeout_s));
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  TRY(ctl_model_request_ask(r));
  int64_t began_ns = clock_now_ns();
  if (ctl_model_request_wanted(r) != r->generation || !r->is_answering) {
    n = append_switch(r, history);
    TRY(ctl_model_request_write(r, MODEL_SWITCHES, (struct model_change){ .switches = history, .n_switches = n }));
  }
  TRY(ctl_model_request_await(r, is_current, (int64_t)r->timeout_s));
  if (n > 0)
    await_time(&history[n - 1]);
  printf("%s@%" PRIu64 " answers, after %s\n", r->space, r->generation, ctl_format_span(clock_now_ns() - began_ns).s);
  return ERR_OK;
}

/* ---- retire ---- */

static err_code_t is_gone(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  struct ctl_model_request *r = context;
  const char *phase = json_string_value(json_object_get(row, "phase"));

  r->is_kept = phase && strcmp(phase, "kept") == 0;
  *is_there = r->is_kept || (phase && strcmp(phase, "removed") == 0);
  snprintf(reason, CTL_MODEL_REASON_BYTES, "%s@%" PRIu64 " is not removed yet", r->space, r->generation);
  return ERR_OK;
}

/* The control topic may say something else, if that daemon cannot switch, or if the topic was created anew. */
static err_code_t verify_idle(void *context, const char *daemon, const json_t *row)
{
  const struct ctl_model_request *r = context;

  if (ctl_json_count(row, "generation") == r->generation && json_is_true(json_object_get(row, "current")))
    FAIL(ERR_USAGE, "%s@%" PRIu64 " answers the queries of the daemon at %s: switch to another one first", r->space,
         r->generation, daemon);
  return ERR_OK;
}

static err_t run_retire(struct ctl_model_request *r)
{
  TRY(ctl_model_request_verify(r));
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  if (ctl_model_request_wanted(r) == r->generation)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " is the current generation: switch to another one first", r->space, r->generation);
  TRY(ctl_model_daemons_visit(&r->daemons, r->space, verify_idle, r));
  TRY(ctl_model_request_ask(r));
  const struct model_generation *known =
      model_state_generation(model_state_find(&r->state, ctl_model_request_space(r)), (uint32_t)r->generation);
  if (r->generation > 1 && !known && !r->is_known)
    FAIL(ERR_USAGE, "there is no %s@%" PRIu64, r->space, r->generation);
  TRY(ctl_model_request_write(
      r, MODEL_RETIRE,
      (struct model_change){ .generation = (uint32_t)r->generation, .derives_from = known ? known->derives_from : 0 }));
  TRY(ctl_model_files_forget(r->ctx, &r->state, known));
  TRY(ctl_model_request_await(r, is_gone, (int64_t)r->timeout_s));
  printf("%s@%" PRIu64 " is gone%s\n", r->space, r->generation,
         r->is_kept ? ". Its parts stay: a generation that derives from it uses them" : ", and its parts");
  return ERR_OK;
}

/* ---- The command ---- */

struct verb {
  const char *name;
  int n_min, n_max; /* arguments: space, generation */
  err_t (*run)(struct ctl_model_request *r);
};

static const struct verb verbs[] = {
  { "list", 0, 1, run_list },     { "status", 0, 1, run_list },   { "add", 1, 1, ctl_model_add },
  { "switch", 2, 2, run_switch }, { "retire", 2, 2, run_retire }, { "shadow", 2, 2, ctl_model_shadow },
};

static const struct verb *find_verb(const char *name)
{
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
    if (strcmp(verbs[i].name, name) == 0)
      return &verbs[i];
  }
  return NULL;
}

static err_t take_arguments(struct ctl_model_request *r, const struct verb *verb, int argc, char **argv)
{
  if (argc < verb->n_min || argc > verb->n_max)
    FAIL(ERR_USAGE, "model %s expects %s%s", verb->name,
         verb->n_max == 2 ? "a space and a generation"
         : verb->n_min    ? "a space"
                          : "a space at most",
         r->is_derived ? "; a number belongs to --derive=N" : "");
  r->space = argc > 0 ? argv[0] : NULL;
  return argc == 2 ? ctl_option_number("the generation", argv[1], 1, SPACE_GENERATION_MAX, &r->generation) : ERR_OK;
}

static err_t open_context(const struct ctl_options *options, const struct verb *verb, struct ctl_model_request *r)
{
  TRY(verb->run == run_list ? ctl_context_open_for_http(options, &r->ctx) : ctl_context_open(options, &r->ctx));
  TRY(ctl_context_verify_catalogue(r->ctx->config));
  return ctl_model_daemons_add(&r->daemons, r->ctx->config->http.listen);
}

static err_t run_request(const struct ctl_options *options, int argc, char **argv, struct ctl_model_request *r)
{
  TRY(ctl_model_request_parse(r, argc, argv));
  const struct verb *verb = optind < argc ? find_verb(argv[optind]) : NULL;
  if (!verb)
    FAIL(ERR_USAGE, "model expects one of list, status, add, shadow, switch and retire");
  TRY(take_arguments(r, verb, argc - optind - 1, argv + optind + 1));
  TRY(open_context(options, verb, r));
  return verb->run(r);
}

static err_t run_model(const struct ctl_options *options, int argc, char **argv)
{
  struct ctl_model_request r = { .min_coverage = COVERAGE_DEFAULT, .timeout_s = TIMEOUT_S_DEFAULT };

  err_code_t err = run_request(options, argc, argv, &r);
  model_state_fini(&r.state);
  ctl_model_daemons_fini(&r.daemons);
  ctl_context_close(&r.ctx);
  return err;
}

const struct ctl_command ctl_model_command = {
  .name = "model",
  .arguments = "list [SPACE] | add SPACE --file FILE | shadow SPACE N --share S | "
               "switch SPACE N | retire SPACE N",
  .summary = "add a new generation of a space's model, compare it, switch to it, or retire one",
  .help = "  list [SPACE]      show the generations: phase, items, and which one answers. status is the same\n"
          "  add SPACE         add a generation, and wait until it is loaded and has all parts that there are\n"
          "  shadow SPACE N    search a share of the queries in generation N too, after their answers, and compare\n"
          "                    the hits: list shows what comes of it. N keeps its share until the next shadow\n"
          "  switch SPACE N    let generation N answer, and wait until it does. The way back is the same\n"
          "  retire SPACE N    remove a generation that does not answer, with its parts, and wait for that\n"
          "\n"
          "  --file FILE       add: the model file. Its SHA-256 goes into the record\n"
          "  --derive[=N]      add: use the parts of generation N (default: the current one), as only networks\n"
          "                    have changed\n"
          "  --path PATH       add: where the daemons find the file (default: FILE's absolute path)\n"
          "  --upload          add: write the file to models.files_topic, from which the daemons fetch it\n"
          "  --generation N    add: the number (default: the next one). A number is never used for another model\n"
          "  --min-coverage P  switch: refuse below this percentage of the current generation's items (default:\n"
          "                    99.9)\n"
          "  --share S         shadow: the share of the queries, from 0 to 1, such as 0.05. 0 ends it\n"
          "  --force           switch: whatever the coverage is\n"
          "  --timeout-s N     wait at most N seconds (default: 60). switch: wait also for the coverage.\n"
          "                    What is missing is printed on standard error when it changes\n"
          "  --at-least HOST   ask and wait for the daemon at this address:port too; may be repeated. If it does not\n"
          "                    answer, nothing is written\n"
          "  --json            list: print what the daemon's /status has\n"
          "\n"
          "The commands write to the control topic (models.topic), which all daemons of a catalogue read:\n"
          "docs/rollout.md has the procedure.\n",
  .run = run_model,
};
