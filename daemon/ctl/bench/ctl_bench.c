/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl bench: load a running daemon with queries at a rate, and measure its answers. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/ctl/bench/ctl_bench_report.h"
#include "daemon/ctl/bench/ctl_bench_svg.h"
#include "daemon/ctl/text/ctl_fields.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/ctl_interrupt.h"
#include "daemon/ctl/ctl_output.h"
#include "daemon/ctl/text/ctl_say.h"
#include "daemon/ctl/ctl_space.h"

enum {
  RATE_DEFAULT = 100,
  RATE_MAX = 1000000,
  DURATION_S_DEFAULT = 10,
  DURATION_S_MAX = 86400,
  COUNT_MAX = 50000000,
  K_DEFAULT = 10,
  K_MAX = 10000000,
  RANDOM_DEFAULT = 1000,
  RANDOM_MAX = 1000000,
  TIMEOUT_MS_DEFAULT = 10000,
  TIMEOUT_MS_MAX = 3600000,
};

struct request {
  struct ctl_context *ctx;
  struct ctl_space space;
  struct ctl_bench_pool pool;
  struct ctl_bench_pool_options options;
  struct ctl_fields fields;
  uint64_t rate, duration_s, count, timeout_ms;
  const char *plot; /* NULL: none */
  bool has_seed;
  bool is_background;
  bool prints_json;
};

static void request_fini(struct request *r)
{
  ctl_bench_pool_fini(&r->pool);
  json_decref(r->options.fields);
  ctl_context_close(&r->ctx);
}

static err_t verify_options(const struct request *r)
{
  if (r->count && r->duration_s)
    FAIL(ERR_USAGE, "give --duration-s or --count, not both");
  if (r->options.path && (r->has_seed || r->options.n_random))
    FAIL(ERR_USAGE, "--seed and --random are for random queries: leave them out, or --queries");
  if (r->options.tensor && !r->options.path)
    FAIL(ERR_USAGE, "--tensor is for --queries FILE.safetensors");
  return ERR_OK;
}

static err_t take_options(struct request *r, int argc, char **argv)
{
  struct ctl_bench_pool_options *o = &r->options;
  const struct ctl_option known[] = {
    { "space", .text = &o->space },
    { "rate", .number = &r->rate, .min = 1, .max = RATE_MAX },
    { "duration-s", .number = &r->duration_s, .min = 1, .max = DURATION_S_MAX },
    { "count", .number = &r->count, .min = 1, .max = COUNT_MAX },
    { "k", .number = &o->k, .min = 1, .max = K_MAX },
    { "method", .text = &o->method, .may_be_empty = true }, /* as in a query */
    { "queries", .text = &o->path },
    { "tensor", .text = &o->tensor },
    { "random", .number = &o->n_random, .min = 1, .max = RANDOM_MAX },
    { "seed", .is_given = &r->has_seed, .number = &o->seed, .max = UINT64_MAX },
    CTL_FIELDS_OPTIONS(&r->fields),
    { "background", .is_given = &r->is_background },
    { "timeout-ms", .number = &r->timeout_ms, .min = 1, .max = TIMEOUT_MS_MAX },
    { "plot", .text = &r->plot },
    { "json", .is_given = &r->prints_json },
    { 0 },
  };

  TRY(ctl_option_take_only(known, argc, argv));
  return verify_options(r);
}

/* Fill in what was not given. */
static void complete_options(struct request *r)
{
  if (!r->count)
    r->count = r->rate * (r->duration_s ? r->duration_s : DURATION_S_DEFAULT);
  if (!r->options.n_random)
    r->options.n_random = RANDOM_DEFAULT;
  if (!r->has_seed)
    r->options.seed = (uint64_t)clock_unix_ms();
}

static err_t verify_plot(const struct request *r)
{
  const struct ctl_input input = { r->options.path, "queries" };

  if (!r->plot)
    return ERR_OK;
  TRY(ctl_output_verify("--plot", r->plot, &input, 1));
  return ctl_bench_svg_verify(r->plot);
}

/* Queries of lines may each name their space; all others are of one. */
static err_t find_space(struct request *r)
{
  err_code_t result = ctl_space_find(r->ctx, r->options.space, &r->space);

  if (result == ERR_USAGE && r->options.path && !r->options.space)
    return ERR_OK;
  TRY(result);
  r->options.space = r->space.name;
  r->options.query_vector = r->space.lengths.query_vector;
  return ERR_OK;
}

static err_t report_all(const struct request *r, const struct ctl_bench_result *result)
{
  const struct ctl_bench_setting setting = {
    .space = r->options.space,
    .method = r->options.method,
    .fields = r->options.fields,
    .queries = r->options.path,
    .k = r->options.k,
    .n_queries = r->pool.n,
    .seed = r->options.seed,
    .per_s = (double)r->rate,
  };
  struct ctl_bench_report report;
  char text[256];

  TRY(ctl_bench_report_make(result, &report));
  (r->prints_json ? ctl_bench_report_print_json : ctl_bench_report_print)(&report, result, &setting, stdout);
  fflush(stdout);
  const char *doubt = ctl_bench_report_doubt(result, text, sizeof text);
  if (doubt)
    ctl_say("%s", doubt);
  if (r->plot)
    TRY(ctl_bench_svg_write(r->plot, &report));
  if (report.n_errors || (report.n_missing && !result->is_interrupted))
    FAIL(ERR_QUERY, "%s of %s queries were not answered, or with an error",
         ctl_format_count(report.n_errors + report.n_missing).s, ctl_format_count(report.n_sent).s);
  return ERR_OK;
}

static err_t run_bench(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(request_fini)
  struct request r = { .rate = RATE_DEFAULT, .timeout_ms = TIMEOUT_MS_DEFAULT, .options.k = K_DEFAULT };
  AUTO(ctl_bench_result_fini) struct ctl_bench_result result = { 0 };

  TRY(take_options(&r, argc, argv));
  TRY(ctl_fields_make(&r.fields, &r.options.fields));
  if (r.is_background)
    TRY(ctl_fields_add(r.options.fields, "background", json_true()));
  complete_options(&r);
  if (r.count > COUNT_MAX)
    FAIL(ERR_USAGE, "--rate and --duration-s would be %s queries; at most %s are kept", ctl_format_count(r.count).s,
         ctl_format_count(COUNT_MAX).s);
  TRY(verify_plot(&r));
  TRY(ctl_context_open(options, &r.ctx));
  r.options.answer_topic = r.ctx->config->query.answer_topic;
  TRY(find_space(&r));
  TRY(ctl_bench_pool_open(&r.options, &r.pool));
  ctl_interrupt_catch();
  const struct ctl_bench_plan plan = { (double)r.rate, r.count, (int64_t)r.timeout_ms };
  TRY(ctl_bench_run(r.ctx, &r.pool, &plan, &result));
  return report_all(&r, &result);
}

const struct ctl_command ctl_bench_command = {
  .name = "bench",
  .arguments = "[--space NAME] [--rate N] [--duration-s N | --count N] [--k N] [--method METHOD]"
               " [--queries FILE]" CTL_FIELDS_ARGUMENTS,
  .summary = "load a running daemon with queries at a rate, and measure the latency of its answers",
  .help =
      "  --space NAME      the space (default: the only one), or one of its generations: NAME@2\n"
      "  --rate N          queries a second (default: 100)\n"
      "  --duration-s N    send for N seconds (default: 10)\n"
      "  --count N         send N queries\n"
      "  --k N             hits of each query (default: 10)\n"
      "  --method METHOD   such as exact (default) or 'average(4000)'\n" CTL_FIELDS_HELP
      "  --queries FILE    send these, again and again: a .jsonl file with one query on each line, as for query\n"
      "                    --file; or a .npy or .safetensors file with one vector in each row. A line may have a\n"
      "                    space, a method and a k of its own, but no other field that the options above give\n"
      "  --tensor NAME     the tensor of a .safetensors file (default: the only one with two dimensions)\n"
      "  --random N        without --queries: send N random vectors of normal numbers, again and again (default: "
      "1000)\n"
      "  --seed N          of the random vectors; each run prints the seed that it used\n"
      "  --background      let the queries of others go first\n"
      "  --timeout-ms N    how long to wait for answers after the last query (default: 10000)\n"
      "  --json            print one JSON object, with durations in microseconds\n"
      "  --plot FILE.svg   draw the histogram\n"
      "\n"
      "Queries are sent when they are due, whether or not the daemon keeps up, and the latency of each is from when "
      "it\n"
      "was due until its answer was read. So a pause of the daemon counts for all queries that it delays. Answers "
      "with\n"
      "an error and missing ones are counted apart. queued and searched are the daemon's own times. One query is sent\n"
      "before all others, and does not count. Ctrl-C ends the load and prints what was measured. Standard error says\n"
      "so if sluicectl itself was the limit. The exit status is 1 if a query was answered with an error, or not at "
      "all.\n",
  .run = run_bench,
};
