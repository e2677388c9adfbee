/* SPDX-License-Identifier: Apache-2.0 */
/* Lines begin with {"id":"...", so that their ids are found without reading the rest. */
#include "daemon/ctl/topk/ctl_topk_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/region.h"
#include "daemon/ctl/text/ctl_json.h"

enum { FLUSH_EVERY_MS = 500 };

static const char line_begin[] = "{\"id\":";
enum { BEGIN_BYTES = sizeof line_begin - 1 };

struct ctl_topk_output {
  char *path;
  FILE *file;
  char **ids; /* [n] sorted; in the region */
  size_t n;
  size_t capacity;
  struct region region;
  int64_t flushed_ns;
};

/* ---- The answers that are there ---- */

static err_t refuse_line(const struct ctl_topk_output *o, uint64_t number)
{
  FAIL(ERR_SYSTEM, "--output: %s has something else than answers in line %" PRIu64 ": name another file", o->path,
       number);
}

/* Every answer has a receipt, and no query has one. */
static bool is_answer(struct span line)
{
  static const char receipt[] = "\"receipt\":{";

  return line.n > BEGIN_BYTES && memcmp(line.p, line_begin, BEGIN_BYTES) == 0 &&
         memmem(line.p, line.n, receipt, sizeof receipt - 1);
}

static err_t read_id(struct ctl_topk_output *o, uint64_t number, struct span line)
{
  struct span copy;
  json_error_t error;
  AUTO(ctl_json_close) json_t *id = NULL;

  if (is_answer(line))
    id = json_loadb((const char *)line.p + BEGIN_BYTES, line.n - BEGIN_BYTES, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK,
                    &error);
  if (!json_is_string(id))
    return refuse_line(o, number);
  TRY(mem_grow(o->n + 1, sizeof *o->ids, &o->capacity, &o->ids));
  TRY(region_copy(&o->region, span_of(json_string_value(id), json_string_length(id) + 1), &copy));
  o->ids[o->n++] = (char *)(uintptr_t)copy.p;
  return ERR_OK;
}

static int compare_ids(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Read all lines, and cut off the last one if it has no end. Without an answer before it, it may be anything. */
static err_t read_ids(struct ctl_topk_output *o)
{
  AUTO(mem_free) char *line = NULL;
  size_t capacity = 0;
  uint64_t number = 1;
  off_t end = 0;
  ssize_t n;

  for (; (n = getline(&line, &capacity, o->file)) > 0 && line[n - 1] == '\n'; number++) {
    TRY(read_id(o, number, span_of(line, (size_t)n)));
    end += n;
  }
  if (ferror(o->file))
    FAIL(ERR_SYSTEM, "--output: %s cannot be read: %s", o->path, strerror(errno));
  if (n > 0 && (o->n == 0 || memcmp(line, line_begin, n < BEGIN_BYTES ? (size_t)n : BEGIN_BYTES) != 0))
    return refuse_line(o, number);
  if (ftruncate(fileno(o->file), end) != 0 || fseeko(o->file, end, SEEK_SET) != 0)
    FAIL(ERR_SYSTEM, "--output: %s cannot be written: %s", o->path, strerror(errno));
  if (o->n)
    qsort(o->ids, o->n, sizeof *o->ids, compare_ids);
  return ERR_OK;
}

static err_t open_file(struct ctl_topk_output *o)
{
  struct stat status;
  int fd = open(o->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

  if (fd < 0)
    FAIL(ERR_SYSTEM, "--output: %s cannot be opened: %s", o->path, strerror(errno));
  o->file = fdopen(fd, "r+");
  if (!o->file) {
    close(fd);
    FAIL(ERR_MEMORY, "no memory for a file");
  }
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    FAIL(ERR_SYSTEM, "--output: %s is not a file", o->path);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0)
    FAIL(ERR_SYSTEM, "--output: %s is in use: is another run of this command going on?", o->path);
  return ERR_OK;
}

err_t ctl_topk_output_open(const char *path, struct ctl_topk_output **out)
{
  AUTO(ctl_topk_output_close) struct ctl_topk_output *o = NULL;

  TRY(mem_array(1, sizeof *o, &o));
  TRY(mem_copy_str(path, &o->path));
  TRY(open_file(o));
  TRY(read_ids(o));
  o->flushed_ns = clock_now_ns();
  *out = o;
  o = NULL;
  return ERR_OK;
}

void ctl_topk_output_close(struct ctl_topk_output **o)
{
  if (!*o)
    return;
  if ((*o)->file)
    fclose((*o)->file);
  mem_free(&(*o)->ids);
  mem_free(&(*o)->path);
  region_fini(&(*o)->region);
  mem_free(o);
}

bool ctl_topk_output_has_some(const struct ctl_topk_output *o)
{
  return o->n > 0;
}

bool ctl_topk_output_has(const struct ctl_topk_output *o, const char *id)
{
  return o->n && bsearch(&id, o->ids, o->n, sizeof *o->ids, compare_ids);
}

/* ---- New answers ---- */

static err_t verify_written(struct ctl_topk_output *o, bool is_written)
{
  if (!is_written)
    FAIL(ERR_SYSTEM, "--output: %s cannot be written: %s", o->path, strerror(errno));
  return ERR_OK;
}

/* Return what stands after the answer's id, which the daemon writes first. An empty span: it does not. */
static struct span after_id(const char *asked, struct span answer)
{
  size_t n_id = strlen(asked);
  const char *text = (const char *)answer.p;

  if (answer.n <= BEGIN_BYTES + n_id + 2 || memcmp(text, line_begin, BEGIN_BYTES) != 0 || text[BEGIN_BYTES] != '"' ||
      memcmp(text + BEGIN_BYTES + 1, asked, n_id) != 0 || text[BEGIN_BYTES + 1 + n_id] != '"')
    return (struct span){ 0 };
  return span_of(text + BEGIN_BYTES + n_id + 2, answer.n - BEGIN_BYTES - n_id - 2);
}

/* The answer's own text is kept but for its id: numbers would change their digits. */
err_t ctl_topk_output_add(struct ctl_topk_output *o, const char *id, const char *asked, struct span answer)
{
  AUTO(ctl_json_close) json_t *name = json_string(id);
  AUTO(mem_free) char *quoted = json_dumps(name, JSON_ENCODE_ANY);
  struct span rest = after_id(asked, answer);

  if (!quoted)
    FAIL(ERR_MEMORY, "no memory for an id");
  if (rest.n == 0 || memchr(rest.p, '\n', rest.n))
    FAIL(ERR_KAFKA, "an answer does not begin with its id on one line: is the daemon of another version?");
  return verify_written(o, fwrite(line_begin, 1, BEGIN_BYTES, o->file) == BEGIN_BYTES && fputs(quoted, o->file) >= 0 &&
                               fwrite(rest.p, 1, rest.n, o->file) == rest.n && fputc('\n', o->file) != EOF);
}

err_t ctl_topk_output_flush(struct ctl_topk_output *o)
{
  if (clock_now_ns() - o->flushed_ns < FLUSH_EVERY_MS * CLOCK_NS_PER_MS)
    return ERR_OK;
  o->flushed_ns = clock_now_ns();
  return verify_written(o, fflush(o->file) == 0);
}

/* Leave whole lines in a file that could not be written to its end: the next run takes half a line for something else
 * if no answer stands before it. */
static void cut_last_line(struct ctl_topk_output *o)
{
  int fd = fileno(o->file);
  off_t end = lseek(fd, 0, SEEK_END);
  char c = '\0';

  __fpurge(o->file); /* closing it would write the rest */
  while (end > 0 && pread(fd, &c, 1, end - 1) == 1 && c != '\n')
    end--;
  if ((end == 0 || c == '\n') && ftruncate(fd, end) != 0)
    return; /* the error of the write is reported */
}

err_t ctl_topk_output_finish(struct ctl_topk_output *o)
{
  bool is_written = !ferror(o->file) && fflush(o->file) == 0 && fsync(fileno(o->file)) == 0;
  int error = errno;

  if (!is_written)
    cut_last_line(o);
  errno = error;
  return verify_written(o, is_written);
}
