/* SPDX-License-Identifier: Apache-2.0 */
/* The control topic: read what it says now, and write a record. Thread: one. */
#ifndef DAEMON_CTL_CTL_MODEL_TOPIC_H
#define DAEMON_CTL_CTL_MODEL_TOPIC_H

#include "daemon/ctl/ctl_context.h"
#include "daemon/models/model_state.h"

/* Read the whole topic. Records that make no sense are skipped: the daemons refuse them.
 *
 * out  the caller frees it with model_state_fini(), after an error too
 *
 * Returns ERR_CONFIG if no control topic is configured; the errors of Kafka.
 */
err_t ctl_model_topic_read(struct ctl_context *ctx, struct model_state *out);

/* Write a record, and wait until Kafka has it.
 *
 * next  the offset after the record
 *
 * Returns ERR_KAFKA with the reason if it did not take it. */
err_t ctl_model_topic_write(struct ctl_context *ctx, const struct model_change *change, int64_t *next);

#endif
