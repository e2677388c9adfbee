/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of daemons by shard, of what a query searches, and of positions; then the findings. */
#include "daemon/ctl/layout/ctl_layout_print.h"

#include <inttypes.h>

#include "base/clock.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_json.h"

struct page {
  const struct ctl_layout_daemons *daemons;
  const struct ctl_layouts *layouts;
  FILE *out;
  int at_width; /* of the longest address */
};

static int width_of_addresses(const struct ctl_layout_daemons *daemons)
{
  size_t width = sizeof "not asked" - 1;

  for (size_t i = 0; i < daemons->n; i++) {
    size_t n = strlen(daemons->items[i].at);
    width = n > width ? n : width;
  }
  return (int)width;
}

static struct ctl_text age(double seconds)
{
  return ctl_format_span((int64_t)(seconds * (double)CLOCK_NS_PER_S));
}

/* ---- Daemons ---- */

static void print_state(const struct page *p, const struct ctl_layout_daemon *d)
{
  const char *not_ready = ctl_layout_daemon_not_ready(d);
  const json_t *counters = json_object_get(d->status, "counters");

  if (!d->status)
    fputs("NO ANSWER", p->out); /* the reason is a problem, below */
  else if (!d->is_ready)
    fprintf(p->out, "NOT READY: %s", not_ready ? not_ready : "?");
  else if (d->role == CTL_LAYOUT_MERGE)
    fprintf(p->out, "ready; %s answered, %s open", ctl_format_count(ctl_json_count(counters, "answers")).s,
            ctl_format_count(ctl_json_count(counters, "open_queries")).s);
  else
    fprintf(p->out, "ready; epoch %" PRIu64, ctl_json_count(d->status, "epoch"));
  fputc('\n', p->out);
}

static void print_daemon(const struct page *p, const struct ctl_layout_daemon *d)
{
  bool has_items = d->role == CTL_LAYOUT_SHARD || d->role == CTL_LAYOUT_WHOLE;
  char name[CTL_LAYOUT_NAME_BYTES];

  ctl_layout_daemon_name(d, name);
  fprintf(p->out, "  %-16s %-*s %13s %9s  ", name, p->at_width, d->at,
          has_items ? ctl_format_count(ctl_json_count(d->status, "items")).s : "-",
          has_items ? ctl_format_count(ctl_layout_daemon_lag(d)).s : "-");
  print_state(p, d);
}

static void print_not_asked(const struct page *p, uint32_t n_shards, size_t index, const struct ctl_layout_shard *shard)
{
  char name[CTL_LAYOUT_NAME_BYTES];

  snprintf(name, sizeof name, "shard %zu of %" PRIu32, index, n_shards);
  fprintf(p->out, "  %-16s %-*s %13s %9s  ", name, p->at_width, "not asked", "-", "-");
  if (shard->heard_s < 0)
    fputs("NOT HEARD OF\n", p->out);
  else
    fprintf(p->out, "%s %s ago\n", ctl_layout_shard_is_there(shard) ? "heard" : "SILENT: heard", age(shard->heard_s).s);
}

static void print_role(const struct page *p, enum ctl_layout_role role)
{
  for (size_t i = 0; i < p->daemons->n; i++) {
    if (p->daemons->items[i].role == role)
      print_daemon(p, &p->daemons->items[i]);
  }
}

static void print_shard(const struct page *p, const struct ctl_layout *l, size_t index)
{
  for (size_t i = 0; i < p->daemons->n; i++) {
    const struct ctl_layout_daemon *d = &p->daemons->items[i];
    if (d->role == CTL_LAYOUT_SHARD && d->n_shards == l->n_shards && d->shard == index)
      print_daemon(p, d);
  }
  if (l->rows[index].n_daemons == 0)
    print_not_asked(p, l->n_shards, index, &l->rows[index]);
}

static void print_daemons(const struct page *p)
{
  fprintf(p->out, "  %-16s %-*s %13s %9s  state\n", "daemon", p->at_width, "at", "items", "lag");
  print_role(p, CTL_LAYOUT_WHOLE);
  for (size_t i = 0; i < p->layouts->n; i++) {
    const struct ctl_layout *l = &p->layouts->items[i];
    for (size_t shard = 0; l->n_shards > 0 && shard < l->n_rows; shard++)
      print_shard(p, l, shard);
  }
  print_role(p, CTL_LAYOUT_MERGE);
  print_role(p, CTL_LAYOUT_UNKNOWN);
}

/* ---- Queries ---- */

/* Return the daemon that is asked for the names of the spaces; NULL: none was asked. */
static const struct ctl_layout_daemon *first_of(const struct ctl_layout *l)
{
  for (size_t i = 0; i < l->n_rows; i++) {
    if (l->rows[i].first)
      return l->rows[i].first;
  }
  return NULL;
}

static void print_space(const struct page *p, const struct ctl_layout *l, const json_t *row)
{
  struct ctl_layout_space space = ctl_layout_space(l, ctl_json_text(row, "name"));

  fprintf(p->out, "  %-16s %s items in %zu of %zu shards, generation %" PRIu64 ", model %.12s\n",
          ctl_json_text(row, "name"), ctl_format_count(space.n_items).s, space.n_rows, l->n_rows,
          ctl_json_count(row, "generation"), ctl_json_text(row, "model"));
}

static void print_touched(const struct page *p, const struct ctl_layout *l)
{
  const struct ctl_layout_daemon *first = first_of(l);
  const json_t *row;
  size_t i;

  if (ctl_layout_state(l) == CTL_LAYOUT_GONE)
    return;
  if (l->n_shards == 0)
    fputs("a query is searched by one daemon with the whole catalogue\n", p->out);
  else
    fprintf(p->out, "a query is searched by one daemon of each of %" PRIu32 " shards, and joined by one merge\n",
            l->n_shards);
  json_array_foreach(json_object_get(first ? first->status : NULL, "spaces"), i, row)
  {
    if (!json_is_false(json_object_get(row, "current")))
      print_space(p, l, row);
  }
}

/* ---- Positions ---- */

static void print_positions_of(const struct page *p, const struct ctl_layout_daemon *d)
{
  char name[CTL_LAYOUT_NAME_BYTES];
  const json_t *row;
  size_t i;

  ctl_layout_daemon_name(d, name);
  json_array_foreach(json_object_get(d->status, "catalogue_log"), i, row)
      fprintf(p->out, "  %9" PRIu64 " %13s %13s %9s  %s, %s\n", ctl_json_count(row, "partition"),
              ctl_format_count(ctl_json_count(row, "next")).s,
              json_is_integer(json_object_get(row, "end")) ? ctl_format_count(ctl_json_count(row, "end")).s : "?",
              ctl_format_count(ctl_json_count(row, "lag")).s, d->at, name);
}

static void print_positions(const struct page *p)
{
  fprintf(p->out, "  %9s %13s %13s %9s  of\n", "partition", "next", "end", "lag");
  for (size_t i = 0; i < p->daemons->n; i++)
    print_positions_of(p, &p->daemons->items[i]);
}

/* ---- Findings ---- */

static void print_findings(const struct ctl_findings *f, bool are_problems, const char *title, FILE *out)
{
  bool has_title = false;

  for (size_t i = 0; i < f->n; i++) {
    if (f->items[i].is_problem != are_problems)
      continue;
    if (!has_title)
      fprintf(out, "%s\n", title);
    has_title = true;
    fprintf(out, "  %s\n", f->items[i].text);
  }
}

void ctl_layout_print(const struct ctl_layout_daemons *daemons, const struct ctl_layouts *layouts,
                      const struct ctl_findings *findings, bool shows_positions, FILE *out)
{
  const struct page p = { daemons, layouts, out, width_of_addresses(daemons) };

  print_daemons(&p);
  for (size_t i = 0; i < layouts->n; i++)
    print_touched(&p, &layouts->items[i]);
  if (shows_positions)
    print_positions(&p);
  print_findings(findings, true, "PROBLEMS", out);
  print_findings(findings, false, "notes", out);
}
