/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl topk: answer a file of queries, into a file of answers. */
#include <getopt.h>
#include <stdio.h>

#include "daemon/ctl/ctl_interrupt.h"
#include "daemon/ctl/ctl_output.h"
#include "daemon/ctl/ctl_space.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/text/ctl_say.h"
#include "daemon/ctl/topk/ctl_topk_note.h"
#include "daemon/ctl/topk/ctl_topk_run.h"

enum { IN_FLIGHT_DEFAULT = 64, TIMEOUT_MS_DEFAULT = 60000, TIMEOUT_MS_MAX = 3600000 };

struct request {
  struct ctl_topk_options options;
  struct ctl_topk_plan plan;
  const char *output, *space;
};

static err_t take_options(struct request *r, int argc, char **argv)
{
  struct ctl_topk_options *o = &r->options;
  const struct ctl_option known[] = {
    { "output", .text = &r->output },
    { "space", .text = &r->space },
    { "k", .number = &o->k, .min = 1, .max = UINT32_MAX },
    { "fields", .text = &o->fields },
    CTL_FIELDS_OPTIONS(&o->more),
    { "keys", .text = &o->keys },
    { "tensor", .text = &o->tensor },
    { "exclude-seen", .is_given = &o->excludes_seen },
    { "in-flight", .number = &r->plan.n_in_flight, .min = 1, .max = CTL_TOPK_IN_FLIGHT_MAX },
    { "timeout-ms", .number = &r->plan.timeout_ms, .min = 1, .max = TIMEOUT_MS_MAX },
    { 0 },
  };

  TRY(ctl_option_take(known, NULL, argc, argv));
  if (argc - optind != 1)
    FAIL(ERR_USAGE, "topk expects one file of queries, or - for standard input");
  o->path = argv[optind];
  if (!r->output)
    FAIL(ERR_USAGE, "say where the answers go: --output FILE");
  if (!ctl_array_is_file(o->path) && (o->tensor || o->keys))
    FAIL(ERR_USAGE, "--tensor and --keys are for a .npy or .safetensors file");
  return ERR_OK;
}

/* Name the space. How long its vectors are is only verified for arrays, and a merge does not know. */
static err_t name_space(struct ctl_context *ctx, const char *name, struct ctl_topk_queries *queries)
{
  struct ctl_space space = { 0 };

  if (name && (queries->has_lines || ctx->config->role == CONFIG_ROLE_MERGE))
    return ctl_topk_queries_set_space(queries, name, 0);
  if (!name && !ctl_topk_queries_need_space(queries))
    return ERR_OK;
  TRY(ctl_space_find(ctx, name, &space));
  return ctl_topk_queries_set_space(queries, space.name, space.lengths.query_vector);
}

static err_t verify_output(const struct request *r)
{
  const struct ctl_input inputs[] = { { r->options.path, "queries" }, { r->options.keys, "keys" } };

  return ctl_output_verify("--output", r->output, inputs, sizeof inputs / sizeof *inputs);
}

static void print_result(const struct ctl_topk_result *r)
{
  printf("answered %s %s in %s (%s queries/s)", ctl_format_count(r->n_answered).s,
         ctl_format_plural(r->n_answered, "query", "queries"), ctl_format_span(r->took_ns).s,
         ctl_format_rate(r->n_answered, r->took_ns).s);
  if (r->n_known)
    printf("; %s had answers from an earlier run, which stay as they are", ctl_format_count(r->n_known).s);
  if (r->n_inexact)
    printf("; %s %s not exact", ctl_format_count(r->n_inexact).s, ctl_format_plural(r->n_inexact, "is", "are"));
  else if (r->n_answered)
    printf("; all are exact");
  putchar('\n');
}

static err_t verify_all(const struct ctl_topk_result *r)
{
  if (r->is_interrupted)
    FAIL(ERR_QUERY, "interrupted: run the same command again to go on");
  if (r->n_failed)
    FAIL(ERR_QUERY, "%s %s: correct what is wrong with %s, and run the same command again to ask once more",
         ctl_format_count(r->n_failed).s, ctl_format_plural(r->n_failed, "query failed", "queries failed"),
         ctl_format_plural(r->n_failed, "it", "them"));
  return ERR_OK;
}

/* The answers are written even if the run ends with an error. */
static err_t answer_file(struct ctl_context *ctx, struct request *r)
{
  AUTO(ctl_topk_queries_fini) struct ctl_topk_queries queries = { 0 };
  AUTO(ctl_topk_output_close) struct ctl_topk_output *output = NULL;
  struct ctl_topk_result result;

  r->options.answer_topic = ctx->config->query.answer_topic;
  TRY(verify_output(r));
  TRY(ctl_topk_queries_open(&r->options, &queries));
  TRY(name_space(ctx, r->space, &queries));
  TRY(ctl_topk_output_open(r->output, &output));
  TRY(ctl_topk_note_verify(r->output, ctl_topk_output_has_some(output), &queries));
  ctl_interrupt_catch();
  err_code_t ran = ctl_topk_run(ctx, &r->plan, &queries, output, &result);
  struct err_kept why = { 0 };
  if (ran != ERR_OK)
    err_keep(ran, &why);
  err_code_t written = ctl_topk_output_finish(output);
  if (result.has_begun)
    print_result(&result);
  if (ran != ERR_OK)
    return err_give_back(&why);
  TRY(written);
  return verify_all(&result);
}

static err_t run_topk(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  struct request r = { .plan = { IN_FLIGHT_DEFAULT, TIMEOUT_MS_DEFAULT } };

  TRY(take_options(&r, argc, argv));
  TRY(ctl_context_open(options, &ctx));
  return answer_file(ctx, &r);
}

const struct ctl_command ctl_topk_command = {
  .name = "topk",
  .arguments = "FILE.jsonl | FILE.npy | FILE.safetensors | - --output FILE.jsonl [--space NAME] [--k N] [--keys FILE]"
               " [--exclude-seen]" CTL_FIELDS_ARGUMENTS " [--fields JSON]",
  .summary = "answer a file of queries, for example one for each user, into a file; it can go on where it was ended",
  .help =
      "Each row of an array [queries, dimension] of F32, F16, BF16 or F64 is the vector of a query. Each line of a\n"
      ".jsonl file is a query: {\"id\": \"user 7\", \"space\": \"SPACE\", \"k\": 10, \"vector\": [0.5, 1]}\n"
      "  --output FILE     a line of JSON for each answer, in the order in which they come, with the query's id.\n"
      "                    Queries whose answers the file has are not asked again: the same command goes on where it\n"
      "                    was ended, by kill -9 too. Begin with a new file for new answers: FILE.asked notes the\n"
      "                    file of queries and the options, and others are refused\n"
      "  --space NAME      the space (default of an array: the only one), or one of its generations: NAME@2\n"
      "  --k N             how many hits (default: 100)\n"
      "  --exclude-seen    leave out what the user has seen whose name is the query's id\n" CTL_FIELDS_HELP
      "  --fields JSON     any fields of all queries, an object: '{\"method\": \"average(4000)\"}'. --space and --k "
      "win\n"
      "                    over these. The fields of a line win over all of these options\n"
      "  --keys FILE       the ids of an array's rows: a text file with one on each line, or a .npy or .safetensors\n"
      "                    file with integers [queries] (default: the rows' numbers, from 0 on). A line without an\n"
      "                    id gets its number, from 1 on. Ids must differ\n"
      "  --tensor NAME     the tensor of a .safetensors file (default: the only one with two dimensions)\n"
      "  --in-flight N     ask at most N queries at a time (default: 64). A daemon takes 1,024\n"
      "  --timeout-ms N    end when no answer comes for so long (default: 60000). A query is sent again when one that\n"
      "                    was sent so much later has its answer\n"
      "\n"
      "Queries of others go first, unless --fields or a line has \"background\": false. Searches go on while the\n"
      "catalogue changes, so answers may be of different epochs: each says which. A query that fails is reported and\n"
      "has no line in the file. The exit status is then 1.\n",
  .run = run_topk,
};
