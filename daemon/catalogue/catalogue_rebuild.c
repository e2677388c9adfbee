/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of a rebuild: may it end, or must a person accept it first? */
#include "daemon/catalogue/catalogue_rebuild.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

void catalogue_rebuild_init(const struct config *config, struct store *store, struct catalogue_rebuild *out)
{
  *out = (struct catalogue_rebuild){ .config = config, .store = store };
  if (store_is_rebuilding(store))
    snprintf(out->cause, sizeof out->cause, "it began before the daemon was started");
}

static void accept_path(const struct catalogue_rebuild *r, char *path, size_t size)
{
  snprintf(path, size, "%s/%s", r->config->store_path, CATALOGUE_REBUILD_FILE);
}

err_t catalogue_rebuild_begin(struct catalogue_rebuild *r, const char *cause)
{
  char path[PATH_MAX];

  snprintf(r->cause, sizeof r->cause, "%s", cause);
  r->waits = false;
  accept_path(r, path, sizeof path);
  unlink(path); /* it accepted an earlier rebuild */
  return store_begin_rebuild(r->store);
}

/* Has a person accepted this rebuild? The file holds the rebuild's number, so an old file cannot accept a later
 * rebuild. */
static bool is_accepted(const struct catalogue_rebuild *r)
{
  char path[PATH_MAX], text[32] = "";

  accept_path(r, path, sizeof path);
  FILE *file = fopen(path, "re");
  if (!file)
    return false;
  bool has_text = fgets(text, sizeof text, file) != NULL;
  fclose(file);
  return has_text && strtoull(text, NULL, 10) == store_rebuild_number(r->store);
}

static bool is_another_cluster(const struct catalogue_rebuild *r)
{
  struct store_source live, now;

  return store_live_source_get(r->store, &live) && store_source_get(r->store, &now) && *live.cluster_id &&
         *now.cluster_id && strcmp(live.cluster_id, now.cluster_id) != 0;
}

static bool leaves_too_few(const struct catalogue_rebuild *r)
{
  struct store_stats stats;

  store_stats(r->store, &stats);
  return stats.n_rebuilt_items * 100 < stats.n_items * config_number(&r->config->catalogue.rebuild_min_percent);
}

static void describe(const struct catalogue_rebuild *r, char *text, size_t size)
{
  struct store_stats stats;

  store_stats(r->store, &stats);
  if (is_another_cluster(r))
    snprintf(text, size, "%s; the new catalogue comes from another Kafka cluster", r->cause);
  else
    snprintf(text, size,
             "%s; the new catalogue has %" PRIu64 " items, the served one has %" PRIu64
             ": fewer than catalogue.rebuild_min_percent = %" PRIu64 " %%",
             r->cause, stats.n_rebuilt_items, stats.n_items, config_number(&r->config->catalogue.rebuild_min_percent));
}

static bool needs_accept(const struct catalogue_rebuild *r)
{
  return is_another_cluster(r) || leaves_too_few(r);
}

bool catalogue_rebuild_may_end(struct catalogue_rebuild *r)
{
  char text[REPORT_TEXT_BYTES];

  if (!needs_accept(r) || is_accepted(r))
    return true;
  if (!r->waits) {
    describe(r, text, sizeof text);
    log_error("rebuild_waits",
              "number=%" PRIu64 " reason=%s remedy=\"if the topic is right, run sluicectl rebuild accept; "
              "otherwise correct the configuration or the topic; the former catalogue is served until then\"",
              store_rebuild_number(r->store), log_quote(span_of_str(text)));
  }
  r->waits = true;
  return false;
}

void catalogue_rebuild_end(struct catalogue_rebuild *r)
{
  char path[PATH_MAX];

  r->waits = false;
  accept_path(r, path, sizeof path);
  if (unlink(path) != 0 && errno != ENOENT)
    log_warn("rebuild_accepted", "path=%s note=\"the file cannot be removed: %s\"", path, strerror(errno));
}

void catalogue_rebuild_report(const struct catalogue_rebuild *r, struct report_rebuild *out)
{
  struct store_stats stats;

  *out = (struct report_rebuild){ .is_under_way = store_is_rebuilding(r->store) };
  if (!out->is_under_way)
    return;
  store_stats(r->store, &stats);
  out->number = store_rebuild_number(r->store);
  out->n_items = stats.n_rebuilt_items;
  out->n_live_items = stats.n_items;
  out->waits = r->waits && needs_accept(r); /* by now it may have enough items, and wait only for room */
  if (out->waits)
    describe(r, out->reason, sizeof out->reason);
  else
    snprintf(out->reason, sizeof out->reason, "%s", r->cause);
}
