/* SPDX-License-Identifier: Apache-2.0 */
/* Parse and check the options of sluicectl eval. */
#include "daemon/ctl/eval/ctl_eval_options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/eval/ctl_eval_attributes.h"
#include "daemon/ctl/text/ctl_max_per.h"
#include "daemon/ctl/text/ctl_option.h"

enum { K_DEFAULT = 100, K_MAX = 10000000, BATCH_DEFAULT = 32, BATCH_MAX = 65536, THREADS_MAX = 1024, TEAM_MAX = 64 };

static err_t take_isa(void *isa, const char *name)
{
  if (strcmp(name, "auto") != 0 && !isa_find(name, isa))
    FAIL(ERR_USAGE, "--isa expects auto, ref, avx2, avx512, avx512vnni, avx512vbmi or amx, not \"%s\"", name);
  return ERR_OK;
}

static err_t take_backend(void *context, const char *name)
{
  enum engine_backend *backend = context;

  if (!engine_backend_find(name, backend) || *backend == ENGINE_AUTO)
    FAIL(ERR_USAGE, "--backend expects cpu or cuda, not \"%s\"", name);
  return ERR_OK;
}

static err_t add_method(void *options, const char *name)
{
  struct ctl_eval_options *o = options;

  o->methods[o->n_methods++] = *name ? name : "exact";
  return ERR_OK;
}

static err_t add_attribute(void *options, const char *text)
{
  struct ctl_eval_options *o = options;

  return ctl_eval_attributes_add(o->attributes, &o->n_attributes, text);
}

static err_t verify_filter(const struct ctl_eval_options *o)
{
  if (o->filter && !*o->filter)
    FAIL(ERR_USAGE, "--filter expects a condition, such as 'price < 20'; without --filter all items are admitted");
  if (o->filter && !o->attributes_path)
    FAIL(ERR_USAGE, "--filter needs --attributes FILE: the attributes of the items that it compares");
  if (o->parameters && !o->filter)
    FAIL(ERR_USAGE, "--parameters needs --filter: they are the values of $1, $2, ... in it");
  if (o->max_per.n && !o->attributes_path)
    FAIL(ERR_USAGE, "--max-per needs --attributes FILE: the attributes of the items that it compares");
  if (o->boosts.n && !o->attributes_path)
    FAIL(ERR_USAGE, "--boost and --boost-if need --attributes FILE: the attributes of the items");
  if (o->boosts.has_now && !o->boosts.n)
    FAIL(ERR_USAGE, "--now is for --boost: it is the time that ages are counted to");
  if (o->n_attributes && !o->attributes_path)
    FAIL(ERR_USAGE, "--attribute needs --attributes FILE, which has the values");
  return ERR_OK;
}

static err_t verify_lifetimes(const struct ctl_eval_options *o)
{
  bool has_lifetimes = o->not_before || o->expires;

  if (has_lifetimes && !o->attributes_path)
    FAIL(ERR_USAGE, "%s needs --attributes FILE, which has the times", o->expires ? "--expires" : "--not-before");
  if (o->has_at && !has_lifetimes)
    FAIL(ERR_USAGE, "--at is for --expires and --not-before");
  return ERR_OK;
}

static err_t verify_options(struct ctl_eval_options *o, const char *stray)
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

static err_t take_options(int argc, char **argv, struct ctl_eval_options *o)
{
  const struct ctl_option known[] = {
    { "model", .text = &o->model_path },
    { "items", .text = &o->items_path },
    { "queries", .text = &o->queries_path },
    { "method", .take = add_method, .context = o },
    { "k", .number = &o->k, .min = 1, .max = K_MAX },
    { "batch", .number = &o->batch, .min = 1, .max = BATCH_MAX },
    { "threads", .number = &o->n_threads, .min = 1, .max = THREADS_MAX },
    { "threads-per-search", .number = &o->threads_per_search, .min = 1, .max = TEAM_MAX },
    { "isa", .take = take_isa, .context = &o->isa },
    { "backend", .take = take_backend, .context = &o->backend },
    { "output", .text = &o->output_path },
    { "filter", .text = &o->filter, .may_be_empty = true }, /* verify_filter() says what is expected */
    { "parameters", .text = &o->parameters },
    { "max-per", .take = ctl_max_per_take, .context = &o->max_per },
    { "mmr", .take = ctl_mmr_take, .context = &o->mmr },
    { "min-score", .take = ctl_min_score_take, .context = &o->min_score },
    { "boost", .take = ctl_boosts_take, .context = &o->boosts },
    { "boost-if", .take = ctl_boosts_take_if, .context = &o->boosts },
    { "now", .take = ctl_boosts_take_now, .context = &o->boosts },
    { "attributes", .text = &o->attributes_path },
    { "attribute", .take = add_attribute, .context = o },
    { "not-before", .text = &o->not_before },
    { "expires", .text = &o->expires },
    { "at", .is_given = &o->has_at, .unix_ms = &o->at_unix_ms },
    { "json", .is_given = &o->prints_json },
    { "targets", .is_given = &o->has_targets },
    { 0 },
  };

  TRY(mem_array((size_t)argc + 1, sizeof *o->methods, &o->methods));
  TRY(mem_array(ATTRIBUTES_MAX, sizeof *o->attributes, &o->attributes));
  TRY(ctl_option_take(known, NULL, argc, argv));
  return verify_options(o, optind < argc ? argv[optind] : NULL);
}

err_t ctl_eval_options_parse(int argc, char **argv, struct ctl_eval_options *out)
{
  AUTO(ctl_eval_options_fini) struct ctl_eval_options options = { .k = K_DEFAULT, .batch = BATCH_DEFAULT };

  options.at_unix_ms = options.boosts.now_unix_ms = clock_unix_ms();
  options.n_threads = options.threads_per_search = 1;
  options.isa = isa_detect();
  TRY(take_options(argc, argv, &options));
  *out = options;
  options = (struct ctl_eval_options){ 0 };
  return ERR_OK;
}

void ctl_eval_options_fini(struct ctl_eval_options *o)
{
  mem_free(&o->methods);
  for (size_t i = 0; i < o->n_attributes; i++)
    mem_free(&o->attributes[i].name.p);
  mem_free(&o->attributes);
}
