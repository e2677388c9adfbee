/* SPDX-License-Identifier: Apache-2.0 */
/* Write changes to the catalogue topic and wait until queries see them. Thread: one. */
#ifndef DAEMON_CTL_CTL_WRITER_H
#define DAEMON_CTL_CTL_WRITER_H

#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/writer/ctl_record.h"
#include "daemon/ctl/writer/ctl_positions.h"
#include "daemon/ctl/text/ctl_progress.h"
#include "daemon/ctl/writer/ctl_resume.h"
#include "ingest/kafka/sender.h"

enum { CTL_REASON_BYTES = 256 };

/* The daemon's counters of records, whoever wrote them. */
struct ctl_counts {
  int64_t applied;
  int64_t deleted;
  int64_t skipped; /* records that changed nothing: applied before, or deletes of missing items */
  int64_t refused;
};

struct ctl_writer {
  struct ctl_context *ctx;
  struct sender *sender;
  struct ctl_positions positions;
  uint64_t n_delivered;
  uint64_t n_failed;
  char reason[CTL_REASON_BYTES]; /* why the first failed record was not delivered */
  struct position newest;        /* partition and offset of the record that was confirmed last */
  int64_t delivered_ns;          /* when Kafka confirmed the newest record, by clock_now_ns() */
  struct ctl_counts before;      /* counters when the writer was opened */
  struct ctl_resume *resume;     /* told the rows that Kafka has; NULL: nothing is */
};

/* Verify that the catalogue topic takes Sluice's own messages, without framing. Returns ERR_CONFIG if not. */
err_t ctl_writer_verify_format(const struct config *config);

/* Verify that the daemon answers and the topic exists, and open a producer.
 *
 * ctx        must stay open as long as the writer
 * linger_ms  how long a record may wait for others to be sent with it
 *
 * Returns ERR_SYSTEM if the daemon does not answer; ERR_CONFIG if it reads another topic; the errors of Kafka.
 */
err_t ctl_writer_open(struct ctl_context *ctx, const char *linger_ms, struct ctl_writer **out);
void ctl_writer_close(struct ctl_writer **w);

/* Queue a record; wait if the queue is full.
 *
 * row  its number, for `resume`
 *
 * Returns ERR_KAFKA_RETRY if it stays full for half a minute. */
err_t ctl_writer_send(struct ctl_writer *w, uint64_t row, const struct ctl_record *record);

/* The same for a message of the catalogue topic. */
err_t ctl_writer_send_message(struct ctl_writer *w, const struct sender_message *message);

/* Wait until a time by clock_now_ns(), or for less, and note what Kafka has confirmed meanwhile. */
void ctl_writer_idle(struct ctl_writer *w, int64_t until_ns);

/* Wait until Kafka has confirmed every record. Returns ERR_KAFKA with the first reason if it did not take all. */
err_t ctl_writer_flush(struct ctl_writer *w);

/* Have ctl_writer_await_visible() wait for all that the topic has by now, whoever wrote it.
 * Returns the errors of Kafka. */
err_t ctl_writer_expect_all(struct ctl_writer *w);

/* Wait until queries see every delivered record. A shard is asked only for those of its own partitions.
 *
 * progress    begun here; NULL: show none
 * visible_ns  when the last record became visible, by clock_now_ns()
 *
 * Says early on standard error that the daemon waits for room.
 *
 * Returns ERR_SYSTEM if the daemon does not answer, or if all records are for other shards. It does so, too, when there
 * has been no progress for a minute, or no room for 15 s.
 */
err_t ctl_writer_await_visible(struct ctl_writer *w, struct ctl_progress *progress, int64_t *visible_ns);

/* Return what the daemon has counted since the writer was opened, including the records of others. Call it when all is
 * visible. It waits up to a second for the daemon to count as many records as were delivered. */
err_t ctl_writer_counts(struct ctl_writer *w, struct ctl_counts *out);

#endif
