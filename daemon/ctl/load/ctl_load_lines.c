/* SPDX-License-Identifier: Apache-2.0 */
/* Read lines, and send those that are items. */
#include "daemon/ctl/load/ctl_load_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_say.h"

enum { BAD_LINES_SHOWN = 20, COUNT_BYTES = 1 << 16 };

struct lines {
  struct ctl_loading *loading;
  FILE *file;
  uint64_t n_bytes;
  char *line;
  size_t capacity;
};

static void lines_fini(struct lines *r)
{
  if (r->file && r->file != stdin)
    fclose(r->file);
  free(r->line);
}

static err_t open_file(struct lines *r, const char *path)
{
  struct stat status;

  r->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
  if (!r->file)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", path, strerror(errno));
  bool is_regular = fstat(fileno(r->file), &status) == 0 && S_ISREG(status.st_mode);
  if (r->loading->options->resume && (!is_regular || r->file == stdin))
    FAIL(ERR_USAGE, "--resume needs a file that can be read again, not standard input or a pipe");
  ctl_progress_begin(&r->loading->progress, "loading", is_regular ? (uint64_t)status.st_size : 0);
  return ERR_OK;
}

/* Count the lines, for the file of --resume. The last one may have no end. */
static uint64_t count_lines(FILE *file)
{
  char bytes[COUNT_BYTES];
  uint64_t n_lines = 0;
  size_t n;
  char last = '\n';

  while ((n = fread(bytes, 1, sizeof bytes, file)) > 0) {
    for (const char *at = bytes; (at = memchr(at, '\n', n - (size_t)(at - bytes))); at++)
      n_lines++;
    last = bytes[n - 1];
  }
  rewind(file);
  return n_lines + (last != '\n');
}

static void reject_line(struct ctl_loading *l)
{
  ctl_progress_hide(&l->progress);
  if (l->n_bad++ < BAD_LINES_SHOWN)
    ctl_say("line %llu: %s", (unsigned long long)l->n_lines, err_message());
  else if (l->n_bad == BAD_LINES_SHOWN + 1)
    ctl_say("more lines cannot be used; only the first %d are shown", BAD_LINES_SHOWN);
}

static err_t load_line(struct ctl_loading *l, struct span line)
{
  uint64_t row = l->n_lines - 1;
  struct ctl_record record;

  region_reset(&l->region);
  if (ctl_json_is_blank(line) || ctl_loading_has(l, row))
    return ERR_OK;
  err_code_t result = ctl_record_read(line, &l->region, &record);
  if (result == ERR_OK)
    result = ctl_loading_send(l, row, &record);
  if (err_class(result) == ERR_CLASS_REJECT || result == ERR_KAFKA) {
    reject_line(l);
    return ERR_OK;
  }
  return result;
}

static err_t read_lines(struct lines *r)
{
  struct ctl_loading *l = r->loading;
  ssize_t n;

  while ((n = getline(&r->line, &r->capacity, r->file)) >= 0) {
    l->n_lines++;
    r->n_bytes += (uint64_t)n;
    TRY(load_line(l, span_of(r->line, (size_t)n)));
    ctl_progress_tick(&l->progress, r->n_bytes, l->n_sent);
  }
  if (ferror(r->file))
    FAIL(ERR_SYSTEM, "%s cannot be read to its end: %s", l->options->path, strerror(errno));
  return ERR_OK;
}

err_t ctl_load_lines(struct ctl_loading *l)
{
  AUTO(lines_fini) struct lines r = { .loading = l };

  TRY(open_file(&r, l->options->path));
  if (l->options->resume)
    TRY(ctl_loading_open_resume(l, "", count_lines(r.file), "line"));
  return read_lines(&r);
}
