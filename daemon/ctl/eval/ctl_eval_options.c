/* SPDX-License-Identifier: Apache-2.0 */
/* Parse and check the options of sluicectl eval. */
#include "daemon/ctl/eval/ctl_eval_options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/eval/ctl_eval_attributes.h"
#include "daemon/ctl/text/ctl_format.h"

enum { K_DEFAULT = 100, K_MAX = 10000000, BATCH_DEFAULT = 32, BATCH_MAX = 65536, THREADS_MAX = 1024, TEAM_MAX = 64 };

static err_t take_isa(const char *name, enum isa *out)
{
  if (strcmp(name, "auto") != 0 && !isa_find(name, out))
    FAIL(ERR_USAGE, "--isa expects auto, ref, avx2, avx512, avx512vnni, avx512vbmi or amx, not \"%s\"", name);
  return ERR_OK;
}

static err_t take_backend(const char *name, enum engine_backend *out)
{
  if (!engine_backend_find(name, out) || *out == ENGINE_AUTO)
    FAIL(ERR_USAGE, "--backend expects cpu or cuda, not \"%s\"", name);
  return ERR_OK;
}

/* Return where an option that is a text is kept; NULL: it is no such option. */
static const char **text_of(struct eval_options *o, int option)
{
  switch (option) {
  case 'm':
    return &o->model_path;
  case 'i':
    return &o->items_path;
  case 'q':
    return &o->queries_path;
  case 'o':
    return &o->output_path;
  case 'f':
    return &o->filter;
  case 'P':
    return &o->parameters;
  case 'a':
    return &o->attributes_path;
  case 'n':
    return &o->not_before;
  case 'e':
    return &o->expires;
  default:
    return NULL;
  }
}

static err_t take_number(struct eval_options *o, int option)
{
  switch (option) {
  case 'k':
    return ctl_parse_number("-k", optarg, 1, K_MAX, &o->k);
  case 'b':
    return ctl_parse_number("--batch", optarg, 1, BATCH_MAX, &o->batch);
  case 't':
    return ctl_parse_number("--threads", optarg, 1, THREADS_MAX, &o->n_threads);
  case 'p':
    return ctl_parse_number("--threads-per-search", optarg, 1, TEAM_MAX, &o->threads_per_search);
  default:
    FAIL(ERR_USAGE, "unknown option of eval, or its value is missing");
  }
}

static err_t take_value(struct eval_options *o, int option)
{
  switch (option) {
  case 'M':
    o->methods[o->n_methods++] = *optarg ? optarg : "exact";
    return ERR_OK;
  case 'w':
    o->has_at = true;
    return ctl_parse_time("--at", optarg, o->at_unix_ms, &o->at_unix_ms);
  case 'A':
    return eval_attributes_add(o->attributes, &o->n_attributes, optarg);
  case 's':
    return take_isa(optarg, &o->isa);
  case 'B':
    return take_backend(optarg, &o->backend);
  default:
    return take_number(o, option);
  }
}

static err_t take_option(struct eval_options *o, int option)
{
  const char **text = text_of(o, option);

  if (text)
    *text = optarg;
  else if (option == 'j')
    o->prints_json = true;
  else if (option == 'T')
    o->has_targets = true;
  else
    return take_value(o, option);
  return ERR_OK;
}

static err_t verify_filter(const struct eval_options *o)
{
  if (o->filter && !*o->filter)
    FAIL(ERR_USAGE, "--filter expects a condition, such as 'price < 20'; without --filter all items are admitted");
  if (o->filter && !o->attributes_path)
    FAIL(ERR_USAGE, "--filter needs --attributes FILE: the attributes of the items that it compares");
  if (o->parameters && !o->filter)
    FAIL(ERR_USAGE, "--parameters needs --filter: they are the values of $1, $2, ... in it");
  if (o->n_attributes && !o->attributes_path)
    FAIL(ERR_USAGE, "--attribute needs --attributes FILE, which has the values");
  return ERR_OK;
}

static err_t verify_lifetimes(const struct eval_options *o)
{
  bool has_lifetimes = o->not_before || o->expires;

  if (has_lifetimes && !o->attributes_path)
    FAIL(ERR_USAGE, "%s needs --attributes FILE, which has the times", o->expires ? "--expires" : "--not-before");
  if (o->has_at && !has_lifetimes)
    FAIL(ERR_USAGE, "--at is for --expires and --not-before");
  return ERR_OK;
}

static err_t verify_options(struct eval_options *o, const char *stray)
{
  if (stray)
    FAIL(ERR_USAGE, "%s: eval expects options only; give a method as --method '%s'", stray, stray);
  if (!o->model_path || !o->items_path || !o->queries_path)
    FAIL(ERR_USAGE, "%s is missing: eval needs --model, --items and --queries",
         !o->model_path   ? "--model"
         : !o->items_path ? "--items"
                          : "--queries");
  if (o->n_methods == 0)
    o->methods[o->n_methods++] = "exact";
  if (o->output_path && o->n_methods > 1)
    FAIL(ERR_USAGE,
         "--output writes the answers of one method, but %zu are given: omit --output to compare them, or run eval "
         "once for each",
         o->n_methods);
  TRY(verify_lifetimes(o));
  return verify_filter(o);
}

static err_t take_options(int argc, char **argv, struct eval_options *o)
{
  static const struct option known[] = {
    { "model", required_argument, NULL, 'm' },
    { "items", required_argument, NULL, 'i' },
    { "queries", required_argument, NULL, 'q' },
    { "method", required_argument, NULL, 'M' },
    { "k", required_argument, NULL, 'k' },
    { "batch", required_argument, NULL, 'b' },
    { "threads", required_argument, NULL, 't' },
    { "threads-per-search", required_argument, NULL, 'p' },
    { "isa", required_argument, NULL, 's' },
    { "backend", required_argument, NULL, 'B' },
    { "output", required_argument, NULL, 'o' },
    { "filter", required_argument, NULL, 'f' },
    { "parameters", required_argument, NULL, 'P' },
    { "attributes", required_argument, NULL, 'a' },
    { "attribute", required_argument, NULL, 'A' },
    { "not-before", required_argument, NULL, 'n' },
    { "expires", required_argument, NULL, 'e' },
    { "at", required_argument, NULL, 'w' },
    { "json", no_argument, NULL, 'j' },
    { "targets", no_argument, NULL, 'T' },
    { 0 },
  };
  int option;

  TRY(mem_array((size_t)argc + 1, sizeof *o->methods, &o->methods));
  TRY(mem_array(ATTRIBUTES_MAX, sizeof *o->attributes, &o->attributes));
  while ((option = getopt_long(argc, argv, ":k:", known, NULL)) != -1) {
    if (option == '?' || option == ':')
      FAIL(ERR_USAGE, "%s: unknown option of eval, or its value is missing", argv[optind - 1]);
    TRY(take_option(o, option));
  }
  return verify_options(o, optind < argc ? argv[optind] : NULL);
}

err_t eval_options_parse(int argc, char **argv, struct eval_options *out)
{
  AUTO(eval_options_fini) struct eval_options options = { .k = K_DEFAULT, .batch = BATCH_DEFAULT };

  options.at_unix_ms = clock_unix_ms();
  options.n_threads = options.threads_per_search = 1;
  options.isa = isa_detect();
  TRY(take_options(argc, argv, &options));
  *out = options;
  options = (struct eval_options){ 0 };
  return ERR_OK;
}

void eval_options_fini(struct eval_options *o)
{
  mem_free(&o->methods);
  for (size_t i = 0; i < o->n_attributes; i++)
    mem_free(&o->attributes[i].name.p);
  mem_free(&o->attributes);
}
