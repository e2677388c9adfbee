/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs in the race: a peer loads the same data from the temporary folder, and answers on request.
 *
 * It gets lines "run METHOD ROUND BATCH K" and answers "MS CPU_MS ID ID ...", K a query, having
 * measured both times itself. Its first
 * line is "ready METHOD=RIVAL ...", with the method of ours that each is to be compared with.
 */
#ifndef TESTS_BENCH_BENCH_PEER_H
#define TESTS_BENCH_BENCH_PEER_H

#include "tests/bench/bench_race.h"

struct peer;

/* Start options->peers/WORKLOAD.py and wait until it is ready; *out is NULL where no peers were asked for. */
void peer_open(const struct bench_options *options, struct peer **out);
void peer_close(struct peer **peer);

/* Add the peer's methods whose batch fits: those that it named with batch, or without any. */
void peer_join(struct peer *peer, struct race *race);

#endif
