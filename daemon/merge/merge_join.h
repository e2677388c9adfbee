/* SPDX-License-Identifier: Apache-2.0 */
/* Joining the answers of shards into the one that a daemon with the whole catalogue would give. Pure: no Kafka, no
 * clock. */
#ifndef DAEMON_MERGE_MERGE_JOIN_H
#define DAEMON_MERGE_MERGE_JOIN_H

#include "base/partial.h"
#include "base/region.h"
#include "kernels/kernels.h"

/* A part: its head and its answer, decoded. */
struct merge_part {
  struct partial head;
  struct answer answer;
};

/* Join answers. The hits are the k best of all, equal scores in order of their keys.
 *
 * The receipt is exact if every part's is and no shard is missing. The bound is that of one daemon: the largest of the
 * parts', and never below the last hit, which may tie with items that were not returned. A missing shard may have any
 * items: the bound is infinite then.
 *
 * With mmr, these are the candidates, among which the hits are chosen then.
 *
 * kernels  of any level: they give the same bits
 * parts    [n] of different shards of one layout, none with an error; n is at least 1
 * n        if it is less than head.n_shards, the others are missing
 * out      borrows from the parts; lives in the region. Its times are those of the slowest shard; merged_us is not set
 */
err_t merge_join(const struct kernels *kernels, const struct merge_part *const *parts, size_t n, struct region *r,
                 struct answer *out);

#endif
