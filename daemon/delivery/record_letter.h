/* SPDX-License-Identifier: Apache-2.0 */
/* The dead letter of a record that cannot be used. */
#ifndef DAEMON_DELIVERY_RECORD_LETTER_H
#define DAEMON_DELIVERY_RECORD_LETTER_H

#include "daemon/delivery/dead_letters.h"
#include "ingest/kafka/topic_record.h"

/* Return the letter of a record, for which nobody waits. The calling thread's newest failure is its reason, until the
 * next one.
 *
 * topic         the dead-letter topic; outlives the letter
 * source_topic  that of the record
 * err           the failure
 */
struct dead_letter record_letter_of(const struct topic_record *record, const char *topic, const char *source_topic,
                                    err_code_t err);

#endif
