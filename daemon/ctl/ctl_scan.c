/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over the records of a scan, and the limit of its patience. */
#include "daemon/ctl/ctl_scan.h"

#include "base/clock.h"

/* The broker has answered before, so records come soon. */
enum { STEP_MS = 200, STILL_TIMEOUT_MS = 30000 };

err_t ctl_scan_visit_all(struct ctl_context *ctx, const char *topic, const struct topic_scan_range *range,
                         ctl_scan_visit visit, void *context)
{
  AUTO(topic_scan_close) struct topic_scan *scan = NULL;
  struct kafka_layers layers;
  struct topic_scan_record record;
  enum topic_scan_found found;

  TRY(ctl_context_layers(ctx, NULL, 0, &ctx->config->catalogue.kafka, &layers));
  TRY(topic_scan_open(&layers, topic, range, CTL_KAFKA_TIMEOUT_MS, &scan));
  for (int64_t moved_ns = clock_now_ns();;) {
    TRY(topic_scan_next(scan, STEP_MS, &record, &found));
    if (found == TOPIC_SCAN_END)
      return ERR_OK;
    if (found == TOPIC_SCAN_RECORD) {
      TRY(visit(context, &record));
      moved_ns = clock_now_ns();
    }
    if (clock_now_ns() - moved_ns > STILL_TIMEOUT_MS * CLOCK_NS_PER_MS)
      FAIL(ERR_KAFKA_RETRY, "topic %s cannot be read to its end: nothing came for %d s", topic,
           STILL_TIMEOUT_MS / 1000);
  }
}
