/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of /, /readyz, /status and /metrics of the role merge. */
#ifndef DAEMON_MERGE_MERGE_PAGES_H
#define DAEMON_MERGE_MERGE_PAGES_H

#include "daemon/config/config.h"
#include "daemon/counters/counters.h"
#include "daemon/http/other_pages.h"
#include "daemon/merge/merge_counters.h"
#include "daemon/merge/shards_heard.h"

/* What the pages show. All outlive them. */
struct merge_view {
  const struct config *config;
  const char *bootstrap;
  struct counters *counters;
  struct merge_counters *merge_counters;
  struct merge_windows *windows;
  struct shards_heard *heard;
  int64_t started_ns;
};

/* The pages. `view` outlives them. /readyz says whether the merge is ready, then for each shard of the layouts that it
 * has heard of, when. */
struct other_pages merge_pages(const struct merge_view *view);

#endif
