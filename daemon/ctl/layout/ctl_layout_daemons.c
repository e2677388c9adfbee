/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each daemon: one that does not answer delays no other. */
#include "daemon/ctl/layout/ctl_layout_daemons.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"

/* ---- The list ---- */

static bool has(const struct ctl_layout_daemons *d, struct span at)
{
  for (size_t i = 0; i < d->n; i++) {
    if (span_equal(span_of_str(d->items[i].at), at))
      return true;
  }
  return false;
}

/* Take the address out of what a browser shows, "http://127.0.0.1:8321/". */
static struct span address_in(struct span at)
{
  static const char scheme[] = "http://";
  size_t n = sizeof scheme - 1;

  if (at.n > n && memcmp(at.p, scheme, n) == 0)
    at = span_of(at.p + n, at.n - n);
  return at.n > 0 && at.p[at.n - 1] == '/' ? span_of(at.p, at.n - 1) : at;
}

static err_t add_one(struct ctl_layout_daemons *d, struct span at)
{
  if (at.n == 0 || !memchr(at.p, ':', at.n))
    FAIL(ERR_USAGE, "--at expects address:port, such as 127.0.0.1:8321, not \"%.*s\"", (int)at.n, (const char *)at.p);
  if (has(d, at))
    return ERR_OK;
  if (d->n == CTL_LAYOUT_DAEMONS_MAX)
    FAIL(ERR_USAGE, "more than %d daemons", CTL_LAYOUT_DAEMONS_MAX);
  TRY(mem_grow(d->n + 1, sizeof *d->items, &d->capacity, &d->items));
  TRY(mem_copy(at, &d->items[d->n].at));
  d->n++;
  return ERR_OK;
}

err_t ctl_layout_daemons_add(struct ctl_layout_daemons *d, const char *list)
{
  size_t n;

  for (;; list += n + 1) {
    n = strcspn(list, ",");
    TRY(add_one(d, address_in(span_of(list, n))));
    if (list[n] == '\0')
      return ERR_OK;
  }
}

void ctl_layout_daemons_fini(struct ctl_layout_daemons *d)
{
  for (size_t i = 0; i < d->n; i++) {
    mem_free(&d->items[i].at);
    mem_free(&d->items[i].reason);
    json_decref(d->items[i].status);
  }
  mem_free(&d->items);
  d->n = 0;
}

/* ---- What a daemon says ---- */

static err_t set_shard(struct ctl_layout_daemon *d, const json_t *shard)
{
  uint64_t index = ctl_json_count(shard, "index"), n_shards = ctl_json_count(shard, "of");

  if (index >= n_shards || n_shards > CTL_LAYOUT_SHARDS_MAX)
    FAIL(ERR_SYSTEM, "%s says that it is shard %" PRIu64 " of %" PRIu64 ", which makes no sense", d->at, index,
         n_shards);
  d->role = CTL_LAYOUT_SHARD;
  d->shard = (uint32_t)index;
  d->n_shards = (uint32_t)n_shards;
  return ERR_OK;
}

static err_t set_role(struct ctl_layout_daemon *d, const json_t *status)
{
  const char *role = json_string_value(json_object_get(status, "role"));
  const json_t *shard = json_object_get(status, "shard");
  bool is_merge = role && strcmp(role, "merge") == 0;

  if (!is_merge && json_is_object(shard))
    return set_shard(d, shard);
  d->role = is_merge ? CTL_LAYOUT_MERGE : CTL_LAYOUT_WHOLE;
  return ERR_OK;
}

err_t ctl_layout_daemon_set(struct ctl_layout_daemon *d, json_t *status)
{
  AUTO(ctl_json_close) json_t *owned = status;

  if (!json_is_boolean(json_object_get(owned, "ready")))
    FAIL(ERR_SYSTEM, "%s does not answer with the status of a sluiced", d->at);
  TRY(set_role(d, owned));
  d->is_ready = json_is_true(json_object_get(owned, "ready"));
  d->status = owned;
  owned = NULL;
  return ERR_OK;
}

uint64_t ctl_layout_daemon_lag(const struct ctl_layout_daemon *d)
{
  const json_t *row;
  uint64_t lag = 0;
  size_t i;

  json_array_foreach(json_object_get(d->status, "catalogue_log"), i, row) lag += ctl_json_count(row, "lag");
  return lag;
}

const char *ctl_layout_daemon_not_ready(const struct ctl_layout_daemon *d)
{
  return json_string_value(json_object_get(d->status, "not_ready"));
}

void ctl_layout_daemon_name(const struct ctl_layout_daemon *d, char out[CTL_LAYOUT_NAME_BYTES])
{
  if (d->role == CTL_LAYOUT_SHARD)
    snprintf(out, CTL_LAYOUT_NAME_BYTES, "shard %" PRIu32 " of %" PRIu32, d->shard, d->n_shards);
  else
    snprintf(out, CTL_LAYOUT_NAME_BYTES, "%s",
             d->role == CTL_LAYOUT_MERGE   ? "merge"
             : d->role == CTL_LAYOUT_WHOLE ? "whole catalogue"
                                           : "?");
}

/* ---- Asking ---- */

struct question {
  struct ctl_layout_daemon *daemon;
  struct http_get *http;
  pthread_t thread;
  bool has_thread;
};

static err_t ask_for_status(struct question *q)
{
  json_t *status;

  TRY(http_get_status(q->http, &status));
  return ctl_layout_daemon_set(q->daemon, status);
}

static void *ask(void *context)
{
  struct question *q = context;

  if (ask_for_status(q) != ERR_OK && mem_copy_str(err_message(), &q->daemon->reason) != ERR_OK)
    q->daemon->reason = NULL;
  return NULL;
}

static err_t ask_all(struct question *questions, const struct ctl_layout_daemons *d)
{
  for (size_t i = 0; i < d->n; i++) {
    struct question *q = &questions[i];
    q->daemon = &d->items[i];
    TRY(http_get_open(d->items[i].at, &q->http));
    if (pthread_create(&q->thread, NULL, ask, q) != 0)
      FAIL(ERR_SYSTEM, "a thread that asks a daemon cannot be started");
    q->has_thread = true;
  }
  return ERR_OK;
}

err_t ctl_layout_daemons_ask(struct ctl_layout_daemons *d)
{
  AUTO(mem_free) struct question *questions = NULL;

  TRY(mem_array(d->n, sizeof *questions, &questions));
  err_code_t err = ask_all(questions, d);
  for (size_t i = 0; i < d->n; i++) {
    if (questions[i].has_thread)
      pthread_join(questions[i].thread, NULL);
    http_get_close(&questions[i].http);
  }
  return err;
}
