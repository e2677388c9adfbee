/* SPDX-License-Identifier: Apache-2.0 */
/* Read answers from the answer topic's end: for sluicectl and tests. Thread: one. */
#ifndef INGEST_ANSWER_READER_H
#define INGEST_ANSWER_READER_H

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka_properties.h"

struct answer_reader;

/* Take up every partition of the topic at the end that it has now: what is answered after this returns is read.
 * Returns ERR_KAFKA_RETRY when the topic or the broker is not there within timeout_ms. */
err_t answer_reader_open(const struct kafka_layers *layers, const char *topic, int timeout_ms,
                         struct answer_reader **out);
void answer_reader_close(struct answer_reader **r);

/* Wait up to timeout_ms for the next answer.
 *
 * value  valid until the next call; n = 0 when none came
 */
err_t answer_reader_next(struct answer_reader *r, int timeout_ms, struct span *value);

#endif
