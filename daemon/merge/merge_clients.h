/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka clients of a merge: the consumer of parts, and the producer of answers and marks.
 *
 * When certificates change, both are replaced at once, in this order:
 *
 * 1. The next consumer joins the group. The former one goes on meanwhile, however long that takes.
 * 2. When the group makes another assignment, the former one leaves, and both former clients are closed.
 * 3. The next producer is prepared, which fences the former one, and the next consumer reads the marks, then the parts
 *    of all queries that are not answered. So none is lost or answered twice, as after a restart.
 *
 * Clients that are lost are replaced in the same way, without a wait.
 *
 * Thread: merge, but for opening the first producer.
 */
#ifndef DAEMON_MERGE_MERGE_CLIENTS_H
#define DAEMON_MERGE_MERGE_CLIENTS_H

#include "daemon/config/config.h"
#include "daemon/setup/kafka_setup.h"
#include "ingest/kafka/renewal_wait.h"
#include "ingest/readers/partial_reader.h"
#include "ingest/readers/transaction.h"

/* All zeros: none are open. */
struct merge_clients {
  struct transaction *transaction;
  struct partial_reader *reader;
  uint64_t version; /* kafka_renewal_version() of their certificates */
};

/* What the clients are opened with. */
struct merge_clients_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  const _Atomic bool *is_stopping;
};

/* Open the producer. It is the first of both, because it must be prepared before anything is read. */
err_t merge_clients_open_producer(const struct merge_clients_context *context, struct merge_clients *out);

/* Open the consumer, and join the group. */
err_t merge_clients_open_reader(const struct merge_clients_context *context, struct merge_clients *out);

void merge_clients_fini(struct merge_clients *c);

/* Prepare the producer, before anything is read. If certificates change meanwhile, the clients are replaced. Blocks:
 * until brokers answer, or the daemon is stopping. Returns ERR_KAFKA_RETRY in the latter case; ERR_KAFKA. */
err_t merge_clients_prepare(const struct merge_clients_context *context, struct merge_clients *c);

/* A replacement that is under way. All zeros: none is. */
struct merge_handover {
  struct merge_clients next;
  uint64_t generation; /* of the former consumer's assignment, when last looked at */
  struct renewal_wait wait;
};

/* If certificates have changed, open the next clients, and serve them until they can take over. Files that do not fit
 * yet are tried again later.
 *
 * is_due  set: the former clients can be closed, and merge_handover_end() called */
err_t merge_handover_step(struct merge_handover *h, const struct merge_clients_context *context,
                          const struct merge_clients *former, bool *is_due);

/* Open the next clients now, and give up those that are under way: the former ones are lost. merge_handover_end() may
 * follow at once. */
err_t merge_handover_at_once(struct merge_handover *h, const struct merge_clients_context *context,
                             const struct merge_clients *former);

/* Return the next clients, which the caller owns now. */
struct merge_clients merge_handover_end(struct merge_handover *h);

#endif
