/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting daemons, and what merges have heard, into rows by shard. */
#include "daemon/ctl/layout/ctl_layout_shards.h"

#include "base/mem.h"

static err_t make_layout(uint32_t n_shards, struct ctl_layout *out)
{
  *out = (struct ctl_layout){ .n_shards = n_shards, .n_rows = n_shards > 0 ? n_shards : 1 };
  TRY(mem_array(out->n_rows, sizeof *out->rows, &out->rows));
  for (size_t i = 0; i < out->n_rows; i++)
    out->rows[i].heard_s = -1;
  return ERR_OK;
}

/* Find or add the layout of a number of shards. */
static err_t get_layout(struct ctl_layouts *l, uint32_t n_shards, struct ctl_layout **out)
{
  struct ctl_layout layout;
  size_t at = 0;

  while (at < l->n && l->items[at].n_shards < n_shards)
    at++;
  *out = &l->items[at];
  if (at < l->n && l->items[at].n_shards == n_shards)
    return ERR_OK;
  TRY(make_layout(n_shards, &layout));
  if (mem_grow(l->n + 1, sizeof *l->items, &l->capacity, &l->items) != ERR_OK) {
    mem_free(&layout.rows);
    return ERR_MEMORY;
  }
  memmove(&l->items[at + 1], &l->items[at], (l->n - at) * sizeof *l->items);
  l->items[at] = layout;
  l->n++;
  *out = &l->items[at];
  return ERR_OK;
}

static err_t add_daemon(struct ctl_layouts *l, const struct ctl_layout_daemon *d)
{
  struct ctl_layout *layout;

  TRY(get_layout(l, d->n_shards, &layout));
  struct ctl_layout_shard *shard = &layout->rows[d->shard];
  if (!shard->first || (d->is_ready && shard->n_ready == 0))
    shard->first = d;
  shard->n_daemons++;
  shard->n_ready += d->is_ready;
  return ERR_OK;
}

static err_t add_heard(struct ctl_layouts *l, const json_t *row)
{
  uint64_t index = ctl_json_count(row, "shard"), n_shards = ctl_json_count(row, "of");
  double heard_s = json_number_value(json_object_get(row, "heard_s"));
  struct ctl_layout *layout;

  if (index >= n_shards || n_shards > CTL_LAYOUT_SHARDS_MAX)
    return ERR_OK;
  TRY(get_layout(l, (uint32_t)n_shards, &layout));
  struct ctl_layout_shard *shard = &layout->rows[index];
  if (shard->heard_s < 0 || heard_s < shard->heard_s)
    shard->heard_s = heard_s;
  return ERR_OK;
}

static err_t add_all_heard(struct ctl_layouts *l, const struct ctl_layout_daemon *merge)
{
  const json_t *row;
  size_t i;

  json_array_foreach(json_object_get(merge->status, "shards"), i, row) TRY(add_heard(l, row));
  return ERR_OK;
}

err_t ctl_layouts_find(const struct ctl_layout_daemons *daemons, struct ctl_layouts *out)
{
  for (size_t i = 0; i < daemons->n; i++) {
    const struct ctl_layout_daemon *d = &daemons->items[i];
    if (d->role == CTL_LAYOUT_MERGE)
      TRY(add_all_heard(out, d));
    else if (d->role != CTL_LAYOUT_UNKNOWN)
      TRY(add_daemon(out, d));
  }
  return ERR_OK;
}

void ctl_layouts_fini(struct ctl_layouts *l)
{
  for (size_t i = 0; i < l->n; i++)
    mem_free(&l->items[i].rows);
  mem_free(&l->items);
  l->n = 0;
}

bool ctl_layout_shard_is_there(const struct ctl_layout_shard *s)
{
  return s->n_daemons > 0 ? s->n_ready > 0 : s->heard_s >= 0 && s->heard_s < CTL_LAYOUT_SILENT_S;
}

enum ctl_layout_state ctl_layout_state(const struct ctl_layout *l)
{
  size_t n_there = 0, n_asked = 0;

  for (size_t i = 0; i < l->n_rows; i++) {
    n_there += ctl_layout_shard_is_there(&l->rows[i]);
    n_asked += l->rows[i].n_daemons;
  }
  if (n_there == l->n_rows)
    return CTL_LAYOUT_COMPLETE;
  return n_there == 0 && n_asked == 0 ? CTL_LAYOUT_GONE : CTL_LAYOUT_INCOMPLETE;
}

const json_t *ctl_layout_find_space(const struct ctl_layout_daemon *d, const char *name)
{
  const json_t *row;
  size_t i;

  json_array_foreach(json_object_get(d->status, "spaces"), i, row)
  {
    const char *other = json_string_value(json_object_get(row, "name"));
    if (other && strcmp(other, name) == 0 && !json_is_false(json_object_get(row, "current")))
      return row;
  }
  return NULL;
}

struct ctl_layout_space ctl_layout_space(const struct ctl_layout *l, const char *name)
{
  struct ctl_layout_space space = { 0 };

  for (size_t i = 0; i < l->n_rows; i++) {
    const json_t *row = l->rows[i].first ? ctl_layout_find_space(l->rows[i].first, name) : NULL;
    space.n_items += ctl_json_count(row, "items");
    space.n_rows += row != NULL;
  }
  return space;
}
