/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl model: list, add, switch and retire generations of a space's model. */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/ctl_format.h"
#include "daemon/ctl/ctl_model_daemons.h"
#include "daemon/ctl/ctl_model_files.h"
#include "daemon/ctl/ctl_model_list.h"
#include "daemon/ctl/ctl_model_topic.h"

enum { TIMEOUT_S_DEFAULT = 60, TIMEOUT_S_MAX = 1000000 };

#define COVERAGE_DEFAULT 99.9

/* A record has nine digits of a share. */
#define SHARE_ACCURACY 1e-8

/* What a command line says. */
struct request {
  struct ctl_context *ctx;
  struct ctl_model_daemons daemons;
  struct model_state state; /* what the control topic says */
  const char *space;
  uint64_t generation; /* 0: not given */
  const char *file;
  const char *path;
  bool is_derived;
  uint64_t derived_from; /* 0: the current generation */
  bool is_kept;          /* the retired generation's parts stay */
  double min_coverage;
  bool uploads;
  double share;
  bool has_share;
  bool is_forced;
  bool prints_json;
  uint64_t timeout_s;
  bool has_timeout;
  char problem[CTL_MODEL_REASON_BYTES]; /* why nothing is compared, as the last daemon says; "" */
  int64_t next;                         /* the offset after the record that was written; 0: none was */
};

/* ---- Parsing ---- */

static err_t parse_percent(const char *text, double *out)
{
  char *end;

  *out = strtod(text, &end);
  if (end == text || *end != '\0' || !(*out >= 0 && *out <= 100))
    FAIL(ERR_USAGE, "--min-coverage expects a percentage from 0 to 100, not %s", text);
  return ERR_OK;
}

static err_t parse_share(struct request *r, const char *text)
{
  char *end;

  r->has_share = true;
  r->share = strtod(text, &end);
  if (end == text || *end != '\0' || !(r->share >= 0 && r->share <= 1))
    FAIL(ERR_USAGE, "--share expects a share of the queries from 0 to 1, such as 0.05, not %s", text);
  return ERR_OK;
}

static err_t parse_option(struct request *r, int option, char **argv)
{
  switch (option) {
  case 'g':
    return ctl_parse_number("--generation", optarg, 2, SPACE_GENERATION_MAX, &r->generation);
  case 'f':
    r->file = optarg;
    return ERR_OK;
  case 'p':
    r->path = optarg;
    return ERR_OK;
  case 'd':
    r->is_derived = true;
    return optarg ? ctl_parse_number("--derive", optarg, 1, SPACE_GENERATION_MAX, &r->derived_from) : ERR_OK;
  case 'u':
    r->uploads = true;
    return ERR_OK;
  case 'c':
    return parse_percent(optarg, &r->min_coverage);
  case 's':
    return parse_share(r, optarg);
  case 'F':
    r->is_forced = true;
    return ERR_OK;
  case 'a':
    return ctl_model_daemons_add(&r->daemons, optarg);
  case 'j':
    r->prints_json = true;
    return ERR_OK;
  case 't':
    r->has_timeout = true;
    return ctl_parse_number("--timeout-s", optarg, 1, TIMEOUT_S_MAX, &r->timeout_s);
  default:
    FAIL(ERR_USAGE, "%s: unknown option of model, or its value is missing", argv[optind - 1]);
  }
}

static err_t parse_options(struct request *r, int argc, char **argv)
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

static err_t verify_space(const struct request *r)
{
  for (size_t i = 0; i < r->ctx->config->n_spaces; i++) {
    if (strcmp(r->ctx->config->spaces[i].name, r->space) == 0)
      return ERR_OK;
  }
  FAIL(ERR_USAGE, "the configuration has no space %s: it needs a first model", r->space);
}

static struct span space_of(const struct request *r)
{
  return span_of_str(r->space);
}

/* The generation that should answer, by the control topic. */
static uint32_t wanted(const struct request *r)
{
  return model_state_at(&r->state, space_of(r), INT64_MAX);
}

static err_t write_change(struct request *r, enum model_change_kind kind, struct model_change change)
{
  change.kind = kind;
  change.space = space_of(r);
  return ctl_model_topic_write(r->ctx, &change, &r->next);
}

static err_t await(struct request *r, ctl_model_goal goal, int64_t timeout_s)
{
  return ctl_model_daemons_await(&r->daemons, r->space, (uint32_t)r->generation, goal, r, r->next, timeout_s * 1000);
}

/* ---- list, status ---- */

static err_t run_list(struct request *r)
{
  for (size_t i = 0; i < r->daemons.n; i++) {
    AUTO(ctl_json_close) json_t *models = NULL;
    TRY(ctl_model_daemons_ask(r->daemons.http[i], &models));
    if (r->daemons.n > 1 && !r->prints_json)
      printf("%s%s\n", i ? "\n" : "", http_get_base(r->daemons.http[i]));
    if (r->prints_json && json_dumpf(models, stdout, JSON_COMPACT) == 0)
      putchar('\n');
    else
      ctl_model_list_print(models, r->space, stdout);
  }
  return ERR_OK;
}

/* ---- add ---- */

static err_t digest_of(const char *path, char hex[SHA256_HEX_BYTES])
{
  FILE *in = fopen(path, "rb");

  if (!in)
    FAIL(ERR_USAGE, "%s cannot be read", path);
  err_code_t err = sha256_file(in, hex);
  fclose(in);
  if (err)
    FAIL(err, "%s has no digest: %s", path, err_message());
  return ERR_OK;
}

/* Choose the number after the largest that was ever used. */
static uint64_t next_generation(const struct request *r)
{
  const struct model_space *said = model_state_find(&r->state, space_of(r));
  uint64_t largest = said && said->n_generations ? said->generations[said->n_generations - 1].number : 1;

  return (largest > 1 ? largest : 1) + 1;
}

/* Find the generation whose parts the new one uses. 0: it has its own. */
static err_t find_root(const struct request *r, uint32_t *root)
{
  uint32_t from = r->derived_from ? (uint32_t)r->derived_from : wanted(r);

  *root = 0;
  if (!r->is_derived)
    return ERR_OK;
  if (from > 1 && !model_state_generation(model_state_find(&r->state, space_of(r)), from))
    FAIL(ERR_USAGE, "--derive: there is no %s@%" PRIu32, r->space, from);
  *root = model_state_root(&r->state, space_of(r), from);
  if (!model_state_uses_parts(&r->state, space_of(r), *root))
    FAIL(ERR_USAGE, "--derive: the parts of %s@%" PRIu32 " are deleted, because it was retired", r->space, *root);
  if (*root >= r->generation)
    FAIL(ERR_USAGE, "--derive: %s@%" PRIu32 " is not earlier than %s@%" PRIu64, r->space, *root, r->space,
         r->generation);
  return ERR_OK;
}

/* A number belongs to one model for ever: items carry parts that were made for it. */
static err_t verify_new(const struct request *r, const char *digest, uint32_t root)
{
  const struct model_generation *known =
      model_state_generation(model_state_find(&r->state, space_of(r)), (uint32_t)r->generation);

  if (known && known->is_retired)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " was retired, and a number is not used again: the next one is %" PRIu64, r->space,
         r->generation, next_generation(r));
  if (known && strcmp(known->digest, digest) != 0)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " is another model, with the digest %s: the next number is %" PRIu64, r->space,
         r->generation, known->digest, next_generation(r));
  if (known && known->derives_from != root)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " was added %s --derive: the next number is %" PRIu64, r->space, r->generation,
         known->derives_from ? "with" : "without", next_generation(r));
  return ERR_OK;
}

static err_code_t is_loaded(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  const struct request *r = context;
  const char *phase = json_string_value(json_object_get(row, "phase"));
  const char *problem = json_string_value(json_object_get(row, "problem"));

  phase = phase ? phase : "not read yet";
  problem = problem ? problem : "";
  if (strcmp(phase, "failed") == 0)
    FAIL(ERR_SYSTEM, "%s@%" PRIu64 " cannot be used: %s", r->space, r->generation, problem);
  *is_there = strcmp(phase, "ready") == 0;
  snprintf(reason, CTL_MODEL_REASON_BYTES, "%s@%" PRIu64 " is not ready: %s%s%s", r->space, r->generation, phase,
           *problem ? ": " : "", problem);
  return ERR_OK;
}

/* Find out where the daemons find the file. `absolute` is memory for that. */
static err_t choose_path(struct request *r, char absolute[PATH_MAX])
{
  if (r->uploads && r->path)
    FAIL(ERR_USAGE, "either --path or --upload");
  if (r->uploads)
    return ERR_OK;
  if (!r->path)
    r->path = realpath(r->file, absolute);
  if (!r->path || *r->path != '/')
    FAIL(ERR_USAGE, "--path expects the absolute path where the daemons find the file");
  return ERR_OK;
}

/* Make the record. A file that is uploaded is in the topic before it. A generation that is added again keeps its share.
 */
static err_t write_add(struct request *r, const char *digest, uint32_t root)
{
  const struct model_generation *known =
      model_state_generation(model_state_find(&r->state, space_of(r)), (uint32_t)r->generation);
  struct model_change change = { .generation = (uint32_t)r->generation,
                                 .digest = span_of_str(digest),
                                 .derives_from = root,
                                 .shadow = known ? known->shadow : 0 };

  if (r->uploads) {
    change.is_in_topic = true;
    TRY(ctl_model_files_upload(r->ctx, r->file, digest, &change.n_bytes));
  } else {
    change.path = span_of_str(r->path);
  }
  return write_change(r, MODEL_ADD, change);
}

static err_t run_add(struct request *r)
{
  char digest[SHA256_HEX_BYTES], absolute[PATH_MAX];
  uint32_t root;

  if (!r->file)
    FAIL(ERR_USAGE, "model add expects --file");
  TRY(verify_space(r));
  TRY(digest_of(r->file, digest));
  TRY(choose_path(r, absolute));
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  r->generation = r->generation ? r->generation : next_generation(r);
  TRY(find_root(r, &root));
  TRY(verify_new(r, digest, root));
  TRY(write_add(r, digest, root));
  TRY(await(r, is_loaded, (int64_t)r->timeout_s));
  printf("%s@%" PRIu64 " is ready: %s\n", r->space, r->generation, digest);
  return ERR_OK;
}

/* ---- switch ---- */

/* Would a daemon that switches now have something to answer with? */
static err_code_t is_covered(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  const struct request *r = context;
  double coverage = 100 * json_number_value(json_object_get(row, "coverage"));

  TRY(is_loaded(context, row, is_there, reason));
  if (!*is_there || r->is_forced || coverage >= r->min_coverage)
    return ERR_OK;
  *is_there = false;
  snprintf(reason, CTL_MODEL_REASON_BYTES,
           "%s@%" PRIu64 " has %.3f %% of the items that the current generation has (%" PRIu64
           " are missing), less than %g %%: write the others, or use --force",
           r->space, r->generation, coverage, ctl_json_count(row, "missing_items"), r->min_coverage);
  return ERR_OK;
}

static err_code_t is_current(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  const struct request *r = context;

  *is_there = json_is_true(json_object_get(row, "current"));
  snprintf(reason, CTL_MODEL_REASON_BYTES, "%s@%" PRIu64 " does not answer yet", r->space, r->generation);
  return ERR_OK;
}

/* Append to the history; the oldest switch falls out if there is no room. */
static size_t append_switch(const struct request *r, struct model_switch history[MODEL_SWITCHES_MAX])
{
  const struct model_space *said = model_state_find(&r->state, space_of(r));
  size_t n = said ? said->n_switches : 0, n_dropped = n == MODEL_SWITCHES_MAX;
  int64_t now_ms = clock_unix_ms();

  n -= n_dropped;
  if (n)
    memcpy(history, said->switches + n_dropped, n * sizeof *history);
  if (n && history[n - 1].at_ms > now_ms) /* its writer's clock was ahead */
    now_ms = history[n - 1].at_ms;
  history[n] = (struct model_switch){ (uint32_t)r->generation, now_ms };
  return n + 1;
}

static err_t run_switch(struct request *r)
{
  struct model_switch history[MODEL_SWITCHES_MAX];

  TRY(verify_space(r));
  TRY(await(r, is_covered, r->has_timeout ? (int64_t)r->timeout_s : 0));
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  int64_t began_ns = clock_now_ns();
  if (wanted(r) != r->generation) {
    size_t n = append_switch(r, history);
    TRY(write_change(r, MODEL_SWITCHES, (struct model_change){ .switches = history, .n_switches = n }));
  }
  TRY(await(r, is_current, (int64_t)r->timeout_s));
  printf("%s@%" PRIu64 " answers, after %s\n", r->space, r->generation, ctl_format_span(clock_now_ns() - began_ns).s);
  return ERR_OK;
}

/* ---- retire ---- */

static err_code_t is_gone(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  struct request *r = context;
  const char *phase = json_string_value(json_object_get(row, "phase"));

  r->is_kept = phase && strcmp(phase, "kept") == 0;
  *is_there = r->is_kept || (phase && strcmp(phase, "removed") == 0);
  snprintf(reason, CTL_MODEL_REASON_BYTES, "%s@%" PRIu64 " is not removed yet", r->space, r->generation);
  return ERR_OK;
}

static err_t run_retire(struct request *r)
{
  TRY(verify_space(r));
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  if (wanted(r) == r->generation)
    FAIL(ERR_USAGE, "%s@%" PRIu64 " is the current generation: switch to another one first", r->space, r->generation);
  const struct model_generation *known =
      model_state_generation(model_state_find(&r->state, space_of(r)), (uint32_t)r->generation);
  if (r->generation > 1 && !known)
    FAIL(ERR_USAGE, "there is no %s@%" PRIu64, r->space, r->generation);
  TRY(write_change(
      r, MODEL_RETIRE,
      (struct model_change){ .generation = (uint32_t)r->generation, .derives_from = known ? known->derives_from : 0 }));
  TRY(ctl_model_files_forget(r->ctx, &r->state, known));
  TRY(await(r, is_gone, (int64_t)r->timeout_s));
  printf("%s@%" PRIu64 " is gone%s\n", r->space, r->generation,
         r->is_kept ? ". Its parts stay: a generation that derives from it uses them" : ", and its parts");
  return ERR_OK;
}

/* ---- shadow ---- */

/* Has the daemon read the share? */
static err_code_t has_asked_share(void *context, const json_t *row, bool *is_there, char reason[CTL_MODEL_REASON_BYTES])
{
  struct request *r = context;
  const json_t *shadow = json_object_get(row, "shadow");
  const char *problem = json_string_value(json_object_get(shadow, "problem"));
  double difference = json_number_value(json_object_get(shadow, "share")) - r->share;

  *is_there = difference < SHARE_ACCURACY && difference > -SHARE_ACCURACY;
  snprintf(reason, CTL_MODEL_REASON_BYTES, "%s@%" PRIu64 " has another share", r->space, r->generation);
  snprintf(r->problem, sizeof r->problem, "%s", problem ? problem : "");
  return ERR_OK;
}

static err_t verify_added(const struct request *r, const struct model_generation *known)
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

static void say_compared(const struct request *r)
{
  if (r->share > 0)
    printf("%s@%" PRIu64 " is compared for %g %% of the queries\n", r->space, r->generation, 100 * r->share);
  else
    printf("%s@%" PRIu64 " is compared no more\n", r->space, r->generation);
  if (*r->problem)
    printf("nothing is compared now: %s\n", r->problem);
}

/* The record is written again as it is, with another share. */
static err_t run_shadow(struct request *r)
{
  if (!r->has_share)
    FAIL(ERR_USAGE, "model shadow expects --share");
  TRY(verify_space(r));
  TRY(ctl_model_topic_read(r->ctx, &r->state));
  const struct model_space *space = model_state_find(&r->state, space_of(r));
  const struct model_generation *known = model_state_generation(space, (uint32_t)r->generation);
  TRY(verify_added(r, known));
  struct model_change change = model_state_record(space, known);
  change.shadow = r->share;
  TRY(write_change(r, MODEL_ADD, change));
  TRY(await(r, has_asked_share, (int64_t)r->timeout_s));
  say_compared(r);
  return ERR_OK;
}

/* ---- The command ---- */

struct verb {
  const char *name;
  int n_min, n_max; /* arguments: space, generation */
  err_t (*run)(struct request *r);
};

static const struct verb verbs[] = {
  { "list", 0, 1, run_list },     { "status", 0, 1, run_list },   { "add", 1, 1, run_add },
  { "switch", 2, 2, run_switch }, { "retire", 2, 2, run_retire }, { "shadow", 2, 2, run_shadow },
};

static const struct verb *find_verb(const char *name)
{
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
    if (strcmp(verbs[i].name, name) == 0)
      return &verbs[i];
  }
  return NULL;
}

static err_t take_arguments(struct request *r, const struct verb *verb, int argc, char **argv)
{
  if (argc < verb->n_min || argc > verb->n_max)
    FAIL(ERR_USAGE, "model %s expects %s%s", verb->name,
         verb->n_max == 2 ? "a space and a generation"
         : verb->n_min    ? "a space"
                          : "a space at most",
         r->is_derived ? "; a number belongs to --derive=N" : "");
  r->space = argc > 0 ? argv[0] : NULL;
  return argc == 2 ? ctl_parse_number("the generation", argv[1], 1, SPACE_GENERATION_MAX, &r->generation) : ERR_OK;
}

static err_t open_context(const struct ctl_options *options, const struct verb *verb, struct request *r)
{
  TRY(verb->run == run_list ? ctl_context_open_for_http(options, &r->ctx) : ctl_context_open(options, &r->ctx));
  return ctl_model_daemons_add(&r->daemons, r->ctx->config->http.listen);
}

static err_t run_request(const struct ctl_options *options, int argc, char **argv, struct request *r)
{
  TRY(parse_options(r, argc, argv));
  const struct verb *verb = optind < argc ? find_verb(argv[optind]) : NULL;
  if (!verb)
    FAIL(ERR_USAGE, "model expects one of list, status, add, shadow, switch and retire");
  TRY(take_arguments(r, verb, argc - optind - 1, argv + optind + 1));
  TRY(open_context(options, verb, r));
  return verb->run(r);
}

static err_t run_model(const struct ctl_options *options, int argc, char **argv)
{
  struct request r = { .min_coverage = COVERAGE_DEFAULT, .timeout_s = TIMEOUT_S_DEFAULT };

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
  .help =
      "  list [SPACE]      show the generations: phase, items, and which one answers. status is the same\n"
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
      "  --timeout-s N     wait at most N seconds (default: 60). switch: wait also for the coverage\n"
      "  --at-least HOST   ask and wait for the daemon at this address:port too; may be repeated\n"
      "  --json            list: print what the daemon's /status has\n"
      "\n"
      "The commands write to the control topic (models.topic), which all daemons of a catalogue read:\n"
      "docs/rollout.md has the procedure.\n",
  .run = run_model,
};
