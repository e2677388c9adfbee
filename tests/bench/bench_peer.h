/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs in a race. A peer loads the same data from the temporary folder and answers on request.
 *
 * We write lines "run METHOD ROUND BATCH K". It answers "MS CPU_MS ID ID ...", with K ids per query and the two times
 * that it measured itself. Its first line is "ready METHOD=RIVAL ...": RIVAL is our method that METHOD is compared
 * with.
 *
 * Filters are in a file, see peer_write_filters(). If one admits fewer than K items, the last ids are -1.
 */
#ifndef TESTS_BENCH_BENCH_PEER_H
#define TESTS_BENCH_BENCH_PEER_H

#include "tests/bench/bench_race.h"

struct peer;

/* Start options->peers/WORKLOAD.py and wait until it is ready. *out is NULL if options->peers is. */
void peer_open(const struct bench_options *options, struct peer **out);
void peer_close(struct peer **peer);

/* Add the peer's methods. They use the race as long as it runs. */
void peer_join(struct peer *peer, struct race *race);

/* Write absent.npy: for each filter and item, 1 if the filter does not admit the item. Query q of a batch has filter
 * q % n_filters. A peer reads the file before each run, untimed, as our own filters are evaluated untimed. */
void peer_write_filters(const struct bench_options *options, const uint8_t *is_absent, size_t n_filters,
                        size_t n_items);

#endif
