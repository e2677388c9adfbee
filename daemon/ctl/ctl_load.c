/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl load: write the items of a file, and wait until queries see them. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_format.h"
#include "daemon/ctl/ctl_say.h"
#include "daemon/ctl/ctl_writer.h"

enum { BAD_LINES_SHOWN = 20 };

struct load {
  struct ctl_writer *writer;
  struct ctl_progress progress;
  struct region region;
  FILE *file;
  uint64_t n_bytes;
  uint64_t n_lines;
  uint64_t n_sent;
  uint64_t n_bad;
  char *line;
  size_t line_capacity;
};

static void load_fini(struct load *l)
{
  ctl_progress_hide(&l->progress);
  ctl_writer_close(&l->writer);
  region_fini(&l->region);
  if (l->file && l->file != stdin)
    fclose(l->file);
  free(l->line);
}

static err_t open_file(struct load *l, const char *path)
{
  struct stat status;

  l->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
  if (!l->file)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", path, strerror(errno));
  bool is_regular = fstat(fileno(l->file), &status) == 0 && S_ISREG(status.st_mode);
  ctl_progress_begin(&l->progress, "loading", is_regular ? (uint64_t)status.st_size : 0);
  return ERR_OK;
}

static void reject_line(struct load *l)
{
  ctl_progress_hide(&l->progress);
  if (l->n_bad++ < BAD_LINES_SHOWN)
    ctl_say("line %llu: %s", (unsigned long long)l->n_lines, err_message());
  else if (l->n_bad == BAD_LINES_SHOWN + 1)
    ctl_say("more lines cannot be used; only the first %d are shown", BAD_LINES_SHOWN);
}

static err_t load_line(struct load *l, struct span line)
{
  struct ctl_record record;

  region_reset(&l->region);
  if (ctl_item_line_is_blank(line))
    return ERR_OK;
  err_code_t result = ctl_item_line_read(line, &l->region, &record);
  if (result == ERR_OK)
    result = ctl_writer_send(l->writer, &record);
  if (result == ERR_OK)
    l->n_sent++;
  else if (err_class(result) == ERR_CLASS_REJECT || result == ERR_KAFKA)
    reject_line(l);
  else
    return result;
  return ERR_OK;
}

static err_t load_lines(struct load *l, const char *path)
{
  ssize_t n;

  while ((n = getline(&l->line, &l->line_capacity, l->file)) >= 0) {
    l->n_lines++;
    l->n_bytes += (uint64_t)n;
    TRY(load_line(l, span_of(l->line, (size_t)n)));
    ctl_progress_tick(&l->progress, l->n_bytes, l->n_sent);
  }
  if (ferror(l->file))
    FAIL(ERR_SYSTEM, "%s cannot be read to its end: %s", path, strerror(errno));
  return ERR_OK;
}

static void print_result(const struct load *l, int64_t started_ns, int64_t visible_ns)
{
  int64_t took_ns = visible_ns - started_ns;

  printf("sent %s %s in %s (%s records/s)", ctl_format_count(l->writer->n_delivered).s,
         ctl_plural(l->writer->n_delivered, "record", "records"), ctl_format_span(took_ns).s,
         ctl_format_rate(l->writer->n_delivered, took_ns).s);
  if (l->writer->n_delivered)
    printf("; all were visible to queries %s after Kafka had them",
           ctl_format_span(visible_ns - l->writer->delivered_ns).s);
  putchar('\n');
}

static err_t verify_all(struct load *l)
{
  struct ctl_counts counts;

  TRY(ctl_writer_counts(l->writer, &counts));
  uint64_t n_dead = counts.refused > 0 ? (uint64_t)counts.refused : 0;
  if (n_dead)
    ctl_say("the daemon has refused %s %s meanwhile: topic %s has the reasons", ctl_format_count(n_dead).s,
            ctl_plural(n_dead, "record", "records"), l->writer->ctx->config->catalogue.dead_letter_topic);
  if (l->n_bad)
    FAIL(ERR_ITEM, "%s of %s lines could not be used", ctl_format_count(l->n_bad).s, ctl_format_count(l->n_lines).s);
  if (n_dead)
    FAIL(ERR_ITEM, "not all records that were sent are in the catalogue");
  return ERR_OK;
}

static err_t load_file(struct ctl_context *ctx, const char *path)
{
  AUTO(load_fini) struct load l = { 0 };
  int64_t visible_ns;

  TRY(ctl_writer_verify_format(ctx->config));
  TRY(open_file(&l, path));
  TRY(ctl_writer_open(ctx, "5", &l.writer));
  int64_t started_ns = clock_now_ns();
  TRY(load_lines(&l, path));
  err_code_t delivered = ctl_writer_flush(l.writer);
  ctl_progress_hide(&l.progress);
  TRY(delivered);
  TRY(ctl_writer_await_visible(l.writer, &l.progress, &visible_ns));
  ctl_progress_hide(&l.progress);
  print_result(&l, started_ns, visible_ns);
  return verify_all(&l);
}

static err_t run_load(const struct ctl_options *options, int argc, char **argv)
{
  static const struct option none[] = { { 0 } };
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;

  if (getopt_long(argc, argv, "+", none, NULL) != -1)
    FAIL(ERR_USAGE, "unknown option %s", argv[optind - 1]);
  if (argc - optind != 1)
    FAIL(ERR_USAGE, "load expects one file, or - for standard input");
  TRY(ctl_context_open(options, &ctx));
  return load_file(ctx, argv[optind]);
}

const struct ctl_command ctl_load_command = {
  .name = "load",
  .arguments = "FILE.jsonl | -",
  .summary = "write the items of a file to the catalogue topic, and wait until queries see them",
  .help = "Each line of the file is one item:\n"
          "  {\"key\": \"gimp\", \"value\": {\"parts\": {\"SPACE\": {\"vector\": [0.5, 1]}}}}\n"
          "A RecJPQ space has \"codes\": [3, 17] in place of the vector. A value of null deletes the item. A key\n"
          "that is not UTF-8 is {\"base64\": \"...\"}.\n"
          "\n"
          "Lines that cannot be used are skipped and reported with the reason. The exit status is then 1. It is\n"
          "also 1 if the daemon refused records during the load, even those of another producer.\n",
  .run = run_load,
};
