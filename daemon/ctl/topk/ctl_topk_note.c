/* SPDX-License-Identifier: Apache-2.0 */
/* The note is {"sluicectl topk": {fields}}. */
#include "daemon/ctl/topk/ctl_topk_note.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/mem.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_say.h"

enum { FIELD_BYTES = 160 };

static const char mark[] = "sluicectl topk";

static err_t make_fields(const struct ctl_topk_queries *q, json_t **out)
{
  AUTO(ctl_json_close) json_t *fields = json_copy(q->common);

  if (!fields)
    FAIL(ERR_MEMORY, "no memory for a note");
  (void)json_object_del(fields, "now_unix_ms");
  (void)json_object_del(fields, "nowUnixMs");
  if (q->options->excludes_seen && json_object_set_new(fields, "exclude_seen", json_true()) != 0)
    FAIL(ERR_MEMORY, "no memory for a note");
  *out = fields;
  fields = NULL;
  return ERR_OK;
}

/* Read the note. The fields stay NULL if there is none. */
static err_t read_note(const char *path, json_t **out)
{
  AUTO(auto_close_file) FILE *file = fopen(path, "re");

  if (!file && errno == ENOENT)
    return ERR_OK;
  if (!file)
    FAIL(ERR_SYSTEM, "--output: its note %s cannot be opened: %s", path, strerror(errno));
  AUTO(ctl_json_close) json_t *note = json_loadf(file, JSON_ALLOW_NUL, NULL);
  if (!note && ftell(file) == 0) /* empty: the run that made it was ended at that moment */
    return ERR_OK;
  json_t *fields = json_object_get(note, mark);
  if (!json_is_object(fields))
    FAIL(ERR_SYSTEM, "--output: %s is not the note of an earlier run: move it away, or name another output", path);
  *out = json_incref(fields);
  return ERR_OK;
}

static err_t refuse_to_write(const char *path)
{
  FAIL(ERR_SYSTEM, "--output: its note %s cannot be written: %s", path, strerror(errno));
}

/* It is on the disk before the first answer. */
static err_t write_note(const char *path, json_t *fields)
{
  AUTO(ctl_json_close) json_t *note = json_pack("{s:O}", mark, fields);
  AUTO(auto_close_file) FILE *file = fopen(path, "we");

  if (!note)
    FAIL(ERR_MEMORY, "no memory for a note");
  if (!file || json_dumpf(note, file, JSON_COMPACT) != 0 || fputc('\n', file) == EOF || fflush(file) != 0 ||
      fsync(fileno(file)) != 0) {
    err_code_t err = refuse_to_write(path);
    if (file)
      unlink(path); /* half a note would be taken for something else */
    return err;
  }
  return ERR_OK;
}

static void print_field(const char *name, const json_t *value, char out[FIELD_BYTES])
{
  AUTO(mem_free) char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

  snprintf(out, FIELD_BYTES, "%s%s%s%s", value ? "" : "no ", name, value ? " " : "", text ? text : "");
}

static err_t verify_field(const char *output, const char *name, const json_t *there, const json_t *here)
{
  char then[FIELD_BYTES], now[FIELD_BYTES];

  if (json_equal(there, here))
    return ERR_OK;
  print_field(name, there, then);
  print_field(name, here, now);
  FAIL(ERR_USAGE, "--output: %s has answers to queries with %s, not with %s: name another file", output, then, now);
}

static err_t verify_fields(const char *output, json_t *there, json_t *here)
{
  const char *name;
  json_t *value;

  json_object_foreach(there, name, value) TRY(verify_field(output, name, value, json_object_get(here, name)));
  json_object_foreach(here, name, value) TRY(verify_field(output, name, json_object_get(there, name), value));
  return ERR_OK;
}

err_t ctl_topk_note_verify(const char *output, bool has_answers, const struct ctl_topk_queries *queries)
{
  AUTO(ctl_json_close) json_t *here = NULL;
  AUTO(ctl_json_close) json_t *there = NULL;
  AUTO(mem_free) char *path = NULL;

  if (asprintf(&path, "%s.asked", output) < 0) {
    path = NULL;
    FAIL(ERR_MEMORY, "no memory for the name of a file");
  }
  TRY(make_fields(queries, &here));
  TRY(read_note(path, &there));
  if (!has_answers)
    return write_note(path, here);
  if (there)
    return verify_fields(output, there, here);
  ctl_say("%s is missing, so it is not known whether the answers in %s are to the same options", path, output);
  return ERR_OK;
}
