/* SPDX-License-Identifier: Apache-2.0 */
/* Write changes to the catalogue topic and wait until the daemon shows them. Thread: one. */
#ifndef DAEMON_CTL_CTL_WRITER_H
#define DAEMON_CTL_CTL_WRITER_H

#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/ctl_item_line.h"
#include "daemon/ctl/ctl_positions.h"
#include "daemon/ctl/ctl_progress.h"
#include "ingest/sender.h"

enum { CTL_REASON_BYTES = 256 };

/* What the daemon has done, for all who write to it. */
struct ctl_counts {
  int64_t applied;
  int64_t deleted;
  int64_t skipped; /* records that changed nothing: it had them already, or they delete what is not there */
  int64_t refused;
};

struct ctl_writer {
  struct ctl_context *ctx;
  struct sender *sender;
  struct ctl_positions positions;
  uint64_t n_delivered;
  uint64_t n_failed;
  char reason[CTL_REASON_BYTES]; /* of the first that was not delivered */
  int64_t delivered_ns;          /* when Kafka had the newest of them, by clock_now_ns() */
  struct ctl_counts before;      /* anything was written */
};

/* Look whether daemon and topic are there, and open a producer.
 *
 * ctx        open as long as the writer
 * linger_ms  how long a message may wait for company
 */
err_t ctl_writer_open(struct ctl_context *ctx, const char *linger_ms, struct ctl_writer **out);
void ctl_writer_close(struct ctl_writer **w);

/* Queue a record, waiting for room. Returns ERR_KAFKA_RETRY when the broker takes none for half a minute. */
err_t ctl_writer_send(struct ctl_writer *w, const struct ctl_record *record);

/* Wait until Kafka has all that was sent. Returns ERR_KAFKA with the first reason when it did not take all. */
err_t ctl_writer_flush(struct ctl_writer *w);

/* Wait until the daemon shows all that was delivered.
 *
 * progress    begun by this; NULL for none
 * visible_ns  when it did, by clock_now_ns()
 *
 * Returns ERR_SYSTEM when the daemon does not answer or makes no headway for a minute.
 */
err_t ctl_writer_await_visible(struct ctl_writer *w, struct ctl_progress *progress, int64_t *visible_ns);

/* What the daemon has done since the writer was opened, with the records of others, too. To be called when all is
 * visible: waits a moment until it has counted as many records as were delivered. */
err_t ctl_writer_counts(struct ctl_writer *w, struct ctl_counts *out);

#endif
