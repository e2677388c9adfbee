/* SPDX-License-Identifier: Apache-2.0 */
/* What query and explain share: queries that are sent, and their answers. Thread: one. */
#ifndef DAEMON_CTL_CTL_ASK_H
#define DAEMON_CTL_CTL_ASK_H

#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_progress.h"
#include "daemon/ctl/query/ctl_queries.h"
#include "ingest/kafka/sender.h"
#include "ingest/readers/topic_scan.h"

enum { CTL_ASK_TIMEOUT_MS_MAX = 3600000 };

struct ctl_ask {
  struct ctl_context *ctx;
  struct ctl_queries queries;
  struct sender *sender;
  struct topic_scan *answers;
  struct ctl_progress progress;
  uint64_t timeout_ms; /* of the next answer */
  uint64_t n_unusable; /* texts that are not a query */
  bool prints_json;
  int64_t moved_ns; /* when the newest answer arrived */
};

/* After an error too, the caller calls ctl_ask_fini(). */
err_t ctl_ask_init(const struct ctl_options *options, struct ctl_ask *out);
void ctl_ask_fini(struct ctl_ask *a);

/* Add a query. One that is unusable is reported and counted, and the others are sent.
 *
 * where, line  name its place in the report: "line 7"
 *
 * Returns ERR_MEMORY. */
err_t ctl_ask_add(struct ctl_ask *a, const char *where, uint64_t line, struct span text);

/* Take the value of --format. Returns ERR_USAGE.
 *
 * ask  a struct ctl_ask
 */
err_t ctl_ask_format(void *ask, const char *name);

/* Send the queries, wait for the answers, and print them. Returns ERR_QUERY if one failed; the errors of Kafka. */
err_t ctl_ask_run(struct ctl_ask *a);

#endif
