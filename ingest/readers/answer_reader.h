/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the answer topic from its end, for sluicectl and tests. Thread: one. */
#ifndef INGEST_ANSWER_READER_H
#define INGEST_ANSWER_READER_H

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka/kafka_properties.h"

struct answer_reader;

/* Open a reader at the present end of each partition of the topic. It reads every answer that is written after this
 * call returns.
 *
 * Returns ERR_OK; ERR_KAFKA_RETRY when the topic or the broker is not there within timeout_ms.
 */
err_t answer_reader_open(const struct kafka_layers *layers, const char *topic, int timeout_ms,
                         struct answer_reader **out);
void answer_reader_close(struct answer_reader **r);

/* Wait up to timeout_ms for the next answer.
 *
 * value  valid until the next call; n = 0: no answer came in time
 */
err_t answer_reader_next(struct answer_reader *r, int timeout_ms, struct span *value);

#endif
