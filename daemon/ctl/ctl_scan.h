/* SPDX-License-Identifier: Apache-2.0 */
/* A topic with the catalogue's client properties, read to the end that it has now. Thread: one. */
#ifndef DAEMON_CTL_CTL_SCAN_H
#define DAEMON_CTL_CTL_SCAN_H

#include "daemon/ctl/ctl_context.h"
#include "ingest/readers/topic_scan.h"

/* Called for each record; it is valid during the call. */
typedef err_code_t (*ctl_scan_visit)(void *context, const struct topic_scan_record *record);

/* Visit the records of a range that does not follow the topic.
 *
 * Returns the error of `visit`; ERR_KAFKA_RETRY when no record comes for 30 s; the errors of topic_scan_open(). */
err_t ctl_scan_visit_all(struct ctl_context *ctx, const char *topic, const struct topic_scan_range *range,
                         ctl_scan_visit visit, void *context);

#endif
