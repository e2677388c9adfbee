/* sluicectl put, sluicectl delete */
#include <getopt.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/ctl_format.h"
#include "daemon/ctl_writer.h"

static void region_close(struct region *r)
{
  region_fini(r);
}

/* Write one record, and say how long it took until queries saw it. */
static err_t write_record(struct ctl_context *ctx, const struct ctl_record *record)
{
  AUTO(ctl_writer_close) struct ctl_writer *w = NULL;
  int64_t visible_ns;
  uint64_t n_dead;

  TRY(ctl_writer_open(ctx, "0", &w));
  int64_t started_ns = clock_now_ns();
  TRY(ctl_writer_send(w, record));
  TRY(ctl_writer_flush(w));
  TRY(ctl_writer_await_visible(w, NULL, &visible_ns));
  TRY(ctl_writer_dead_letters(w, &n_dead));
  if (n_dead)
    FAIL(ERR_ITEM, "the daemon has refused it: topic %s tells the reason", ctx->config->catalogue.dead_letter_topic);
  printf("visible after %s (%s after Kafka had it)\n", ctl_format_span(visible_ns - started_ns).s,
         ctl_format_span(visible_ns - w->delivered_ns).s);
  return ERR_OK;
}

static err_t parse_arguments(int argc, char **argv, int n_expected, const char *expected)
{
  static const struct option none[] = { { 0 } };

  if (getopt_long(argc, argv, "+", none, NULL) != -1)
    FAIL(ERR_USAGE, "unknown option %s; a key that begins with - comes after --", argv[optind - 1]);
  if (argc - optind != n_expected)
    FAIL(ERR_USAGE, "%s takes %s", argv[0], expected);
  return ERR_OK;
}

static err_t run_put(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  AUTO(region_close) struct region region = { 0 };
  struct ctl_record record;

  TRY(parse_arguments(argc, argv, 2, "a key and a value"));
  TRY(ctl_item_make(span_of_str(argv[optind]), span_of_str(argv[optind + 1]), &region, &record));
  TRY(ctl_context_open(options, &ctx));
  return write_record(ctx, &record);
}

static err_t run_delete(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;

  TRY(parse_arguments(argc, argv, 1, "a key"));
  struct ctl_record record = { .key = span_of_str(argv[optind]), .is_delete = true };
  TRY(ctl_item_verify_key(record.key));
  TRY(ctl_context_open(options, &ctx));
  return write_record(ctx, &record);
}

const struct ctl_command ctl_put_command = {
  .name = "put",
  .arguments = "KEY JSON-VALUE",
  .summary = "write one item, and wait until queries see it",
  .help = "The value is as in a file for load: '{\"parts\": {\"SPACE\": {\"vector\": [0.5, 1]}}}'. Spaces that it\n"
          "does not name keep what they have of the item.\n",
  .run = run_put,
};

const struct ctl_command ctl_delete_command = {
  .name = "delete",
  .arguments = "KEY",
  .summary = "delete one item, and wait until queries no longer see it",
  .help = "A tombstone is written to the catalogue topic, whether the item is there or not.\n",
  .run = run_delete,
};
