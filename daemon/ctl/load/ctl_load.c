/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl load: write the items of a file, and wait until queries see them. */
#include <getopt.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/ctl/array/ctl_array.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/load/ctl_load_array.h"
#include "daemon/ctl/load/ctl_load_lines.h"
#include "daemon/ctl/text/ctl_say.h"

enum { RATE_MAX = 10000000 };

/* n_refused  by the daemon meanwhile, even if somebody else sent them */
static void print_result(const struct ctl_loading *l, uint64_t n_refused, int64_t started_ns, int64_t visible_ns)
{
  int64_t took_ns = visible_ns - started_ns;

  printf("sent %s %s in %s (%s records/s)", ctl_format_count(l->writer->n_delivered).s,
         ctl_format_plural(l->writer->n_delivered, "record", "records"), ctl_format_span(took_ns).s,
         ctl_format_rate(l->writer->n_delivered, took_ns).s);
  if (l->n_known)
    printf("; %s were there from an earlier run", ctl_format_count(l->n_known).s);
  if (l->writer->n_delivered > n_refused)
    printf("; %s visible to queries %s after Kafka had them",
           n_refused ? "those that the daemon took were" : "all were",
           ctl_format_span(visible_ns - l->writer->delivered_ns).s);
  else if (l->n_known && !n_refused)
    printf("; all are visible to queries");
  putchar('\n');
}

static err_t verify_all(const struct ctl_loading *l, uint64_t n_refused)
{
  if (n_refused)
    ctl_say("the daemon has refused %s %s meanwhile: topic %s has the reasons", ctl_format_count(n_refused).s,
            ctl_format_plural(n_refused, "record", "records"), l->writer->ctx->config->catalogue.dead_letter_topic);
  if (l->n_bad)
    FAIL(ERR_ITEM, "%s of %s lines could not be used", ctl_format_count(l->n_bad).s, ctl_format_count(l->n_lines).s);
  if (n_refused)
    FAIL(ERR_ITEM, "not all records that were sent are in the catalogue");
  return ERR_OK;
}

/* Send everything, and note what Kafka has even if sending ends early: --resume goes on there. */
static err_t send_all(struct ctl_loading *l)
{
  err_code_t sent = ctl_array_is_file(l->options->path) ? ctl_load_array(l) : ctl_load_lines(l);

  ctl_progress_hide(&l->progress);
  TRY(sent);
  return ctl_writer_flush(l->writer);
}

static err_t load_file(struct ctl_context *ctx, const struct ctl_load_options *options)
{
  AUTO(ctl_loading_fini) struct ctl_loading l = { .options = options };
  struct ctl_counts counts;
  int64_t visible_ns;

  TRY(ctl_writer_verify_format(ctx->config));
  TRY(ctl_writer_open(ctx, "5", &l.writer));
  int64_t started_ns = clock_now_ns();
  TRY(send_all(&l));
  if (l.n_known) /* their positions are not noted */
    TRY(ctl_writer_expect_all(l.writer));
  TRY(ctl_writer_await_visible(l.writer, &l.progress, &visible_ns));
  ctl_progress_hide(&l.progress);
  TRY(ctl_writer_counts(l.writer, &counts));
  uint64_t n_refused = counts.refused > 0 ? (uint64_t)counts.refused : 0;
  print_result(&l, n_refused, started_ns, visible_ns);
  return verify_all(&l, n_refused);
}

static err_t take_options(struct ctl_load_options *o, int argc, char **argv)
{
  const struct ctl_option known[] = {
    { "space", .text = &o->space },
    { "tensor", .text = &o->tensor },
    { "keys", .text = &o->keys },
    { "key-prefix", .text = &o->key_prefix, .may_be_empty = true },
    { "resume", .text = &o->resume },
    { "rate", .number = &o->rate, .min = 1, .max = RATE_MAX },
    { 0 },
  };

  TRY(ctl_option_take(known, NULL, argc, argv));
  if (argc - optind != 1)
    FAIL(ERR_USAGE, "load expects one file, or - for standard input");
  o->path = argv[optind];
  if (!ctl_array_is_file(o->path) && (o->space || o->tensor || o->keys || *o->key_prefix))
    FAIL(ERR_USAGE, "--space, --tensor, --keys and --key-prefix are for a .npy or .safetensors file");
  return ERR_OK;
}

static err_t run_load(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  struct ctl_load_options o = { .key_prefix = "" };

  TRY(take_options(&o, argc, argv));
  TRY(ctl_context_open(options, &ctx));
  return load_file(ctx, &o);
}

const struct ctl_command ctl_load_command = {
  .name = "load",
  .arguments = "FILE.jsonl | FILE.npy | FILE.safetensors | - [--space NAME] [--keys FILE] [--rate N] [--resume FILE]",
  .summary = "write the items of a file to the catalogue topic, and wait until queries see them",
  .help =
      "Each line of a .jsonl file is one item:\n"
      "  {\"key\": \"gimp\", \"value\": {\"parts\": {\"SPACE\": {\"vector\": [0.5, 1]}}}}\n"
      "A RecJPQ space has \"codes\": [3, 17] in place of the vector. A value of null deletes the item. A key\n"
      "that is not UTF-8 is {\"base64\": \"...\"}.\n"
      "\n"
      "Each row of an array is one item's vector or codes in one space: [items, dimension] of F32, F16, BF16 or\n"
      "F64, or [items, splits] of integers. The whole array is checked before the first item is sent.\n"
      "  --space NAME      the space (default: the only one), or one of its generations: NAME@2\n"
      "  --tensor NAME     the tensor of a .safetensors file (default: the only one with two dimensions)\n"
      "  --keys FILE       the items' keys: a text file with one on each line, or a .npy or .safetensors file with\n"
      "                    integers [items] (default: the rows' numbers, from 0 on)\n"
      "  --key-prefix TEXT put this before each key\n"
      "\n"
      "For all files:\n"
      "  --rate N          send at most N records a second\n"
      "  --resume FILE     note in FILE what Kafka has, and do not send it again. The same command then goes on where\n"
      "                    a load was ended, by kill -9 too, and waits for all that the topic has then. After a\n"
      "                    complete load it sends nothing\n"
      "\n"
      "Lines that cannot be used are skipped and reported with the reason. The exit status is then 1. It is\n"
      "also 1 if the daemon refused records during the load, even those of another producer.\n",
  .run = run_load,
};
