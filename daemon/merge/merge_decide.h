/* SPDX-License-Identifier: Apache-2.0 */
/* Deciding what the parts of one query become: a whole answer, one with shards missing, or an error. Pure. */
#ifndef DAEMON_MERGE_MERGE_DECIDE_H
#define DAEMON_MERGE_MERGE_DECIDE_H

#include "daemon/merge/merge_join.h"

/* Make the answer from the parts that have come. They may be of several layouts (numbers of shards): the most complete
 * one is used. Parts of different models, or of different generations of one, are never joined.
 *
 *   every shard has answered           the joined answer; or the error of the first shard that has one
 *   a shard is missing, or has an      with allow_partial the joined answer of the others, else the first shard's
 *   error, or another model            error, else PARTIAL, which names the shards
 *
 * kernels  see merge_join()
 * parts    [n], n is at least 1; sorted here
 * out      borrows from the parts; lives in the region
 */
err_t merge_decide(const struct kernels *kernels, struct merge_part *parts, size_t n, struct region *r,
                   struct answer *out);

#endif
