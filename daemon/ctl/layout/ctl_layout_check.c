/* SPDX-License-Identifier: Apache-2.0 */
/* The checks, from one daemon to all of them. */
#include "daemon/ctl/layout/ctl_layout_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum { LIST_BYTES = 256 };

__attribute__((format(printf, 3, 4))) static err_t add(struct ctl_findings *f, bool is_problem, const char *format, ...)
{
  char *text = NULL;
  va_list args;

  TRY(mem_grow(f->n + 1, sizeof *f->items, &f->capacity, &f->items));
  va_start(args, format);
  int n = vasprintf(&text, format, args);
  va_end(args);
  if (n < 0)
    FAIL(ERR_MEMORY, "no memory for a text");
  f->items[f->n++] = (struct ctl_finding){ is_problem, text };
  return ERR_OK;
}

#define PROBLEM(f, ...) add(f, true, __VA_ARGS__)
#define NOTE(f, ...)    add(f, false, __VA_ARGS__)

/* ---- Each daemon ---- */

static err_t check_daemon(const struct ctl_layout_daemon *d, struct ctl_findings *f)
{
  char name[CTL_LAYOUT_NAME_BYTES];
  const char *reason = ctl_layout_daemon_not_ready(d);

  ctl_layout_daemon_name(d, name);
  if (!d->status)
    return d->reason ? PROBLEM(f, "%s", d->reason) : PROBLEM(f, "%s does not answer", d->at);
  if (!d->is_ready)
    return PROBLEM(f, "%s, %s, is not ready: %s", d->at, name, reason ? reason : "it does not say why");
  return ERR_OK;
}

static err_t check_daemons(const struct ctl_layout_daemons *daemons, struct ctl_findings *f)
{
  for (size_t i = 0; i < daemons->n; i++)
    TRY(check_daemon(&daemons->items[i], f));
  return ERR_OK;
}

/* ---- Do they belong together? ---- */

/* A name that all must have in common. Daemons to which it does not apply have none. */
struct common_name {
  const char *field, *what;
};

static const char *name_of(const struct ctl_layout_daemon *d, const char *field)
{
  return json_string_value(json_object_get(json_object_get(d->status, "kafka"), field));
}

static err_t check_name(const struct ctl_layout_daemons *daemons, const struct common_name *name,
                        struct ctl_findings *f)
{
  const struct ctl_layout_daemon *first = NULL;

  for (size_t i = 0; i < daemons->n; i++) {
    const struct ctl_layout_daemon *d = &daemons->items[i];
    const char *text = name_of(d, name->field), *other = first ? name_of(first, name->field) : NULL;
    if (text && other && strcmp(text, other) != 0)
      return PROBLEM(f, "%s has the %s \"%s\", and %s has \"%s\": they do not belong together", first->at, name->what,
                     other, d->at, text);
    first = text && !first ? d : first;
  }
  return ERR_OK;
}

static err_t check_names(const struct ctl_layout_daemons *daemons, struct ctl_findings *f)
{
  static const struct common_name names[] = {
    { "query_group", "query.group" },
    { "query_topic", "query topic" },
    { "catalogue_topic", "catalogue topic" },
    { "partials_topic", "partials topic" },
  };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    TRY(check_name(daemons, &names[i], f));
  return ERR_OK;
}

static const struct ctl_layout_daemon *find_role(const struct ctl_layout_daemons *daemons, enum ctl_layout_role role)
{
  for (size_t i = 0; i < daemons->n; i++) {
    if (daemons->items[i].role == role)
      return &daemons->items[i];
  }
  return NULL;
}

/* ---- Models ---- */

static const char *model_of(const struct ctl_layout_daemon *d, const char *space)
{
  return json_string_value(json_object_get(ctl_layout_find_space(d, space), "model"));
}

/* Digests are long: their beginning tells them apart. */
enum { DIGEST_SHOWN = 12 };

/* Find the first daemon before `at` that has the space; in the same layout as `at`, or in another one. */
static const struct ctl_layout_daemon *find_with_model(const struct ctl_layout_daemons *daemons, size_t at,
                                                       const char *space, bool is_in_same_layout)
{
  for (size_t i = 0; i < at; i++) {
    const struct ctl_layout_daemon *d = &daemons->items[i];
    if (model_of(d, space) && (d->n_shards == daemons->items[at].n_shards) == is_in_same_layout)
      return d;
  }
  return NULL;
}

/* Compare a daemon's model of a space with that of the first of its layout. The first compares with another layout's:
 * a new model may come with a new layout. */
static err_t check_model(const struct ctl_layout_daemons *daemons, size_t at, const char *space, struct ctl_findings *f)
{
  const struct ctl_layout_daemon *d = &daemons->items[at];
  const struct ctl_layout_daemon *sibling = find_with_model(daemons, at, space, true);
  const struct ctl_layout_daemon *other = sibling ? sibling : find_with_model(daemons, at, space, false);

  if (!other || !model_of(d, space) || strcmp(model_of(d, space), model_of(other, space)) == 0)
    return ERR_OK;
  return add(f, sibling != NULL, "different models of the space %s: %s has %.*s, %s has %.*s. %s", space, other->at,
             DIGEST_SHOWN, model_of(other, space), d->at, DIGEST_SHOWN, model_of(d, space),
             sibling ? "Their parts are never joined" : "Each layout answers with its own");
}

static err_t check_models(const struct ctl_layout_daemons *daemons, struct ctl_findings *f)
{
  const json_t *row;
  size_t i;

  for (size_t at = 0; at < daemons->n; at++) {
    json_array_foreach(json_object_get(daemons->items[at].status, "spaces"), i, row)
    {
      const char *name = json_string_value(json_object_get(row, "name"));
      if (name && !json_is_false(json_object_get(row, "current")))
        TRY(check_model(daemons, at, name, f));
    }
  }
  return ERR_OK;
}

/* ---- Layouts ---- */

/* List the shards that are not there: "1, 3". */
static void list_missing(const struct ctl_layout *l, char out[LIST_BYTES])
{
  size_t n = 0;

  out[0] = '\0';
  for (size_t i = 0; i < l->n_rows; i++) {
    if (ctl_layout_shard_is_there(&l->rows[i]))
      continue;
    if (n > LIST_BYTES - 16) {
      snprintf(out + n, LIST_BYTES - n, " ...");
      return;
    }
    n += (size_t)snprintf(out + n, LIST_BYTES - n, "%s%zu", n ? ", " : "", i);
  }
}

static err_t check_layout(const struct ctl_layout *l, struct ctl_findings *f)
{
  enum ctl_layout_state state = ctl_layout_state(l);
  char missing[LIST_BYTES];

  if (state == CTL_LAYOUT_COMPLETE || l->n_shards == 0) /* a daemon that is not ready was named */
    return ERR_OK;
  if (state == CTL_LAYOUT_GONE)
    return NOTE(f, "the layout of %" PRIu32 " shards was stopped: all are silent, and merges forget them soon",
                l->n_shards);
  list_missing(l, missing);
  return PROBLEM(f, "the layout of %" PRIu32 " shards is not complete: no daemon is ready, or heard of, as shard %s",
                 l->n_shards, missing);
}

/* Name two daemons of different layouts: a wrong catalogue.shard.of looks the same as a layout that grows. */
static err_t check_pair(const struct ctl_layout *a, const struct ctl_layout *b, struct ctl_findings *f)
{
  for (size_t i = 0; i < a->n_rows && i < b->n_rows && a->n_shards > 0; i++) {
    const struct ctl_layout_daemon *one = a->rows[i].first, *other = b->rows[i].first;
    if (one && other)
      return NOTE(f,
                  "two layouts: shard %zu is of %" PRIu32 " at %s, and of %" PRIu32 " at %s. If the catalogue is not "
                  "being divided anew, catalogue.shard.of of one is wrong",
                  i, a->n_shards, one->at, b->n_shards, other->at);
  }
  return ERR_OK;
}

/* A daemon with the whole catalogue reads every query of the group, as the shards do. */
static err_t check_whole(const struct ctl_layout_daemons *daemons, struct ctl_findings *f)
{
  const struct ctl_layout_daemon *whole = find_role(daemons, CTL_LAYOUT_WHOLE);
  const struct ctl_layout_daemon *merge = find_role(daemons, CTL_LAYOUT_MERGE);
  const char *topic = whole ? name_of(whole, "answer_topic") : NULL,
             *of_merge = merge ? name_of(merge, "answer_topic") : NULL;

  if (!topic || !of_merge || strcmp(topic, of_merge) != 0)
    return ERR_OK;
  return PROBLEM(f, "queries are answered twice: %s has the whole catalogue, and %s answers into the same topic, %s",
                 whole->at, merge->at, topic);
}

static err_t check_layouts(const struct ctl_layout_daemons *daemons, const struct ctl_layouts *l,
                           struct ctl_findings *f)
{
  for (size_t i = 0; i < l->n; i++)
    TRY(check_layout(&l->items[i], f));
  for (size_t i = 1; i < l->n; i++)
    TRY(check_pair(&l->items[i - 1], &l->items[i], f));
  if (l->n == 0 && find_role(daemons, CTL_LAYOUT_MERGE))
    return PROBLEM(f, "no shard is named, and the merges have heard of none");
  return check_whole(daemons, f);
}

/* ---- Merges ---- */

static bool has_heard(const struct ctl_layout_daemon *merge, uint32_t n_shards, size_t shard)
{
  const json_t *row;
  size_t i;

  json_array_foreach(json_object_get(merge->status, "shards"), i, row)
  {
    if (ctl_json_count(row, "of") == n_shards && ctl_json_count(row, "shard") == shard)
      return json_number_value(json_object_get(row, "heard_s")) < CTL_LAYOUT_SILENT_S;
  }
  return false;
}

/* Has it run for so short a time that it need not have been heard of, or have heard? */
static bool is_young(const struct ctl_layout_daemon *d)
{
  const json_t *uptime_s = json_object_get(d->status, "uptime_s");

  return json_is_number(uptime_s) && json_number_value(uptime_s) < CTL_LAYOUT_SILENT_S;
}

static err_t check_hearing(const struct ctl_layout_daemon *merge, const struct ctl_layout *l, struct ctl_findings *f)
{
  for (size_t i = 0; i < l->n_rows && l->n_shards > 0 && !is_young(merge); i++) {
    if (l->rows[i].n_ready > 0 && !is_young(l->rows[i].first) && !has_heard(merge, l->n_shards, i))
      TRY(NOTE(f, "the merge %s has not heard of shard %zu of %" PRIu32 " within %d s", merge->at, i, l->n_shards,
               CTL_LAYOUT_SILENT_S));
  }
  return ERR_OK;
}

static err_t check_merges(const struct ctl_layout_daemons *daemons, const struct ctl_layouts *l, struct ctl_findings *f)
{
  if (find_role(daemons, CTL_LAYOUT_SHARD) && !find_role(daemons, CTL_LAYOUT_MERGE))
    TRY(NOTE(f, "no merge was asked: name one with --at"));
  for (size_t at = 0; at < daemons->n; at++) {
    const struct ctl_layout_daemon *merge = &daemons->items[at];
    for (size_t i = 0; merge->role == CTL_LAYOUT_MERGE && merge->is_ready && i < l->n; i++)
      TRY(check_hearing(merge, &l->items[i], f));
  }
  return ERR_OK;
}

err_t ctl_layout_check(const struct ctl_layout_daemons *daemons, const struct ctl_layouts *layouts,
                       struct ctl_findings *out)
{
  TRY(check_daemons(daemons, out));
  TRY(check_names(daemons, out));
  TRY(check_models(daemons, out));
  TRY(check_layouts(daemons, layouts, out));
  return check_merges(daemons, layouts, out);
}

void ctl_findings_fini(struct ctl_findings *f)
{
  for (size_t i = 0; i < f->n; i++)
    free(f->items[i].text);
  mem_free(&f->items);
  f->n = 0;
}

size_t ctl_findings_problems(const struct ctl_findings *f)
{
  size_t n = 0;

  for (size_t i = 0; i < f->n; i++)
    n += f->items[i].is_problem;
  return n;
}
