/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that librdkafka repeats: each client reports one at each try, for as long as it lasts. Thread: any. */
#ifndef INGEST_KAFKA_REPEATS_H
#define INGEST_KAFKA_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

/* May this error be logged? The same one, whatever the client and however long the try took, is logged once in 30 s.
 *
 * n_more  how often it was left out since it was logged last
 */
bool kafka_repeats_allow(int error, const char *reason, uint64_t *n_more);

#endif
