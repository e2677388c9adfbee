/* SPDX-License-Identifier: Apache-2.0 */
/* The same as the tables, as an object. */
#include "daemon/ctl/layout/ctl_layout_json.h"

#include "daemon/http/print/json_put.h"

static const char *role_word(enum ctl_layout_role role)
{
  switch (role) {
  case CTL_LAYOUT_WHOLE:
    return "whole";
  case CTL_LAYOUT_SHARD:
    return "shard";
  case CTL_LAYOUT_MERGE:
    return "merge";
  default:
    return NULL;
  }
}

static const char *state_word(enum ctl_layout_state state)
{
  return state == CTL_LAYOUT_COMPLETE ? "complete" : state == CTL_LAYOUT_GONE ? "gone" : "incomplete";
}

/* Copy a field of a /status as it is. */
static void copy(json_t *to, const char *name, const json_t *status, const char *field)
{
  json_put(to, name, json_deep_copy(json_object_get(status, field)));
}

static json_t *shard_json(const struct ctl_layout_daemon *d)
{
  if (d->role != CTL_LAYOUT_SHARD)
    return json_null();
  json_t *shard = json_object();
  json_put_count(shard, "index", d->shard);
  json_put_count(shard, "of", d->n_shards);
  return shard;
}

/* The fields that only a daemon of this role has. */
static void put_of_role(const struct ctl_layout_daemon *d, json_t *row)
{
  if (d->role == CTL_LAYOUT_MERGE) {
    copy(row, "heard", d->status, "shards");
    copy(row, "counters", d->status, "counters");
  } else if (d->status) {
    copy(row, "items", d->status, "items");
    copy(row, "epoch", d->status, "epoch");
    json_put_count(row, "lag", ctl_layout_daemon_lag(d));
    copy(row, "positions", d->status, "catalogue_log");
    copy(row, "spaces", d->status, "spaces");
  }
}

static json_t *daemon_json(const struct ctl_layout_daemon *d)
{
  json_t *row = json_object();

  json_put_text(row, "at", d->at);
  json_put_text(row, "no_answer", d->status ? NULL : d->reason);
  json_put_text(row, "role", role_word(d->role));
  json_put(row, "shard", shard_json(d));
  json_put_bool(row, "ready", d->is_ready);
  json_put_text(row, "not_ready", ctl_layout_daemon_not_ready(d));
  put_of_role(d, row);
  return row;
}

static json_t *row_json(const struct ctl_layout_shard *s, size_t index)
{
  json_t *row = json_object();

  json_put_count(row, "index", index);
  json_put_count(row, "daemons", s->n_daemons);
  json_put_count(row, "ready", s->n_ready);
  json_put(row, "heard_s", s->heard_s < 0 ? json_null() : json_real(s->heard_s));
  return row;
}

static json_t *layout_json(const struct ctl_layout *l)
{
  json_t *object = json_object(), *shards = json_array();

  json_put_count(object, "of", l->n_shards);
  json_put_text(object, "state", state_word(ctl_layout_state(l)));
  for (size_t i = 0; i < l->n_rows; i++)
    json_array_append_new(shards, row_json(&l->rows[i], i));
  json_put(object, "shards", shards);
  return object;
}

static json_t *findings_json(const struct ctl_findings *f, bool are_problems)
{
  json_t *list = json_array();

  for (size_t i = 0; i < f->n; i++) {
    if (f->items[i].is_problem == are_problems)
      json_array_append_new(list, json_string(f->items[i].text));
  }
  return list;
}

json_t *ctl_layout_json(const struct ctl_layout_daemons *daemons, const struct ctl_layouts *layouts,
                        const struct ctl_findings *findings)
{
  json_t *root = json_object(), *rows = json_array(), *list = json_array();

  for (size_t i = 0; i < daemons->n; i++)
    json_array_append_new(rows, daemon_json(&daemons->items[i]));
  for (size_t i = 0; i < layouts->n; i++)
    json_array_append_new(list, layout_json(&layouts->items[i]));
  json_put(root, "daemons", rows);
  json_put(root, "layouts", list);
  json_put(root, "problems", findings_json(findings, true));
  json_put(root, "notes", findings_json(findings, false));
  return root;
}
