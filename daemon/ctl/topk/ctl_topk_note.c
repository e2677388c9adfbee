/* SPDX-License-Identifier: Apache-2.0 */
/* The note is {"sluicectl topk": {fields}, "queries": {where they are}}. */
#include "daemon/ctl/topk/ctl_topk_note.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/auto_close.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_say.h"

enum { FIELD_BYTES = 400 };

static const char mark[] = "sluicectl topk", mark_queries[] = "queries";

static err_t make_fields(const struct ctl_topk_queries *q, json_t **out)
{
  AUTO(ctl_json_close) json_t *fields = json_copy(q->common);

  if (!fields)
    FAIL(ERR_MEMORY, "no memory for a note");
  (void)json_object_del(fields, "background"); /* which changes no answer */
  (void)json_object_del(fields, "now_unix_ms");
  (void)json_object_del(fields, "nowUnixMs");
  if (q->options->excludes_seen && json_object_set_new(fields, "exclude_seen", json_true()) != 0)
    FAIL(ERR_MEMORY, "no memory for a note");
  *out = fields;
  fields = NULL;
  return ERR_OK;
}

static err_t set_text(json_t *queries, const char *name, const char *text)
{
  json_t *value = json_string(text);

  if (json_object_set_new(queries, name, value ? value : json_string(log_quote(span_of_str(text)))) != 0)
    FAIL(ERR_MEMORY, "no memory for a note");
  return ERR_OK;
}

static err_t set_path(json_t *queries, const char *name, const char *path)
{
  char whole[PATH_MAX];

  return set_text(queries, name, realpath(path, whole) ? whole : path);
}

/* Note a digest of an array: its rows' numbers are those of any other array too. Lines may have been corrected since.
 */
static err_t set_contents(json_t *queries, const struct ctl_array *array)
{
  char text[32];

  snprintf(text, sizeof text, "xxh3:%016" PRIx64, XXH3_64bits(array->tensor.bytes.p, array->tensor.bytes.n));
  return set_text(queries, "contents", text);
}

static err_t make_where(const struct ctl_topk_queries *q, json_t **out)
{
  AUTO(ctl_json_close) json_t *where = json_object();
  const struct ctl_topk_options *o = q->options;

  TRY(set_path(where, "file", o->path));
  if (o->tensor)
    TRY(set_text(where, "tensor", o->tensor));
  if (o->keys)
    TRY(set_path(where, "keys", o->keys));
  if (!q->has_lines)
    TRY(set_contents(where, &q->array));
  *out = where;
  where = NULL;
  return ERR_OK;
}

static err_t make_note(const struct ctl_topk_queries *q, json_t **out)
{
  AUTO(ctl_json_close) json_t *fields = NULL;
  AUTO(ctl_json_close) json_t *where = NULL;

  TRY(make_fields(q, &fields));
  TRY(make_where(q, &where));
  *out = json_pack("{s:O, s:O}", mark, fields, mark_queries, where);
  if (!*out)
    FAIL(ERR_MEMORY, "no memory for a note");
  return ERR_OK;
}

/* Read the note. It stays NULL if there is none. */
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
  if (!json_is_object(json_object_get(note, mark)) || !json_is_object(json_object_get(note, mark_queries)))
    FAIL(ERR_SYSTEM, "--output: %s is not the note of an earlier run: move it away, or name another output", path);
  *out = note;
  note = NULL;
  return ERR_OK;
}

static err_t refuse_to_write(const char *path)
{
  FAIL(ERR_SYSTEM, "--output: its note %s cannot be written: %s", path, strerror(errno));
}

/* It is on the disk before the first answer. */
static err_t write_note(const char *path, const json_t *note)
{
  AUTO(auto_close_file) FILE *file = fopen(path, "we");

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

static err_t verify_note(const char *output, const json_t *there, const json_t *here)
{
  TRY(verify_fields(output, json_object_get(there, mark_queries), json_object_get(here, mark_queries)));
  return verify_fields(output, json_object_get(there, mark), json_object_get(here, mark));
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
  TRY(make_note(queries, &here));
  TRY(read_note(path, &there));
  if (!has_answers)
    return write_note(path, here);
  if (there)
    return verify_note(output, there, here);
  ctl_say("%s is missing, so it is not known whether the answers in %s are to the same queries and options", path,
          output);
  return ERR_OK;
}
