/* SPDX-License-Identifier: Apache-2.0 */
/* Both stores are on one disk: what users have seen is in a folder of the other one. */
#include "daemon/http/sections/store_metrics.h"

#include <sys/statvfs.h>

#include "daemon/http/print/metric_print.h"

uint64_t store_metrics_disk_free_bytes(const struct status *s)
{
  struct statvfs disk;

  return statvfs(s->config->store_path, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : 0;
}

void store_metrics_print(const struct status *s, FILE *out)
{
  struct seen_store_stats seen = { 0 };
  struct store_stats stats;

  store_stats(s->store, &stats);
  if (s->seen)
    seen_stats(s->seen, &seen);
  metric_print_gauge(out, "sluice_store_map_bytes", "Bytes that the store's map can hold before it grows",
                     stats.map_bytes);
  metric_print_gauge(out, "sluice_store_used_bytes", "Bytes of the store's map that are in use", stats.used_bytes);
  metric_print_gauge(out, "sluice_seen_store_used_bytes", "Bytes of the seen store's map that are in use",
                     seen.used_bytes);
  metric_print_gauge(out, "sluice_disk_free_bytes", "Bytes that are free on the disk of the store",
                     store_metrics_disk_free_bytes(s));
}
