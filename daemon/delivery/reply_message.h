/* SPDX-License-Identifier: Apache-2.0 */
/* What messages with replies have in common, whether a daemon that searches sends them or a merge. */
#ifndef DAEMON_DELIVERY_REPLY_MESSAGE_H
#define DAEMON_DELIVERY_REPLY_MESSAGE_H

#include "ingest/kafka/sender.h"
#include "ingest/kafka/trace_headers.h"
#include "ingest/wire/wire.h"

enum { REPLY_HEADERS = 1 + TRACE_HEADERS, REPLY_REASON_BYTES = 512 };

/* List the headers of a reply: its format, and those of its query's trace.
 *
 * out  [REPLY_HEADERS]
 *
 * Returns their number.
 */
size_t reply_message_headers(enum wire_format format, const struct trace_headers *trace, struct sender_header *out);

/* Say in the error that replaces an answer why no broker took it.
 *
 * n_bytes       of the answer
 * is_own_topic  it was sent to the query's reply_topic
 */
void reply_message_explain(size_t n_bytes, bool is_own_topic, const char *reason, char text[REPLY_REASON_BYTES]);

#endif
