/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs in a race. A peer loads the same data from the temporary folder and answers on request.
 *
 * We write lines "run METHOD ROUND BATCH K". It answers "MS CPU_MS ID ID ...", with K ids per query and the two times
 * that it measured itself. Its first line is "ready METHOD=RIVAL ...": RIVAL is our method that METHOD is compared
 * with.
 */
#ifndef TESTS_BENCH_BENCH_PEER_H
#define TESTS_BENCH_BENCH_PEER_H

#include "tests/bench/bench_race.h"

struct peer;

/* Start options->peers/WORKLOAD.py and wait until it is ready. *out is NULL if options->peers is. */
void peer_open(const struct bench_options *options, struct peer **out);
void peer_close(struct peer **peer);

/* Add the peer's methods that can run this batch size: those that it named with it, or with none. */
void peer_join(struct peer *peer, struct race *race);

#endif
