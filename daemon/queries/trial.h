/* SPDX-License-Identifier: Apache-2.0 */
/* The query that a reader of the status page tries. A search can take all cores for seconds, and nobody has let the
 * reader write to the query topic. So trials are bounded:
 *
 * - There is one at a time, for more items like an item, with at most TRIAL_K_MAX hits. These show the first
 *   TRIAL_ATTRIBUTES_MAX attributes of the configuration.
 * - Its search begins only while no query from Kafka waits (query_queue.h), within TRIAL_WAIT_S seconds.
 * - After a search, trials rest for TRIAL_RESTS times as long. So they take at most a tenth of one worker's time.
 *
 * Thread: one that asks (HTTP), and the search workers, which answer.
 */
#ifndef DAEMON_QUERIES_TRIAL_H
#define DAEMON_QUERIES_TRIAL_H

#include "daemon/config/config.h"
#include "daemon/counters/counters.h"

enum { TRIAL_K_MAX = 100, TRIAL_ATTRIBUTES_MAX = 8, TRIAL_WAIT_S = 5, TRIAL_RESTS = 9, TRIAL_MESSAGE_BYTES = 512 };

struct trial;
struct query_queue;

/* What a trial needs; all of it outlives the trial. */
struct trial_context {
  const struct config *config;
  struct engine *engine;
  struct query_queue *queue;
  struct counters *counters;
};

err_t trial_open(const struct trial_context *context, struct trial **out);
void trial_close(struct trial **t);

/* Are there workers to search? At first there are none. */
void trial_allow(struct trial *t, bool has_workers);

/* The query. */
struct trial_query {
  struct span key; /* of the item that the hits are like */
  struct span space;
  uint32_t k;
};

enum trial_begin { TRIAL_HAS_BEGUN, TRIAL_IS_BAD, TRIAL_MUST_WAIT };

/* Begin a trial. After TRIAL_HAS_BEGUN, call trial_take() and trial_give_up() until one of them ends it.
 *
 * query    is copied
 * message  [TRIAL_MESSAGE_BYTES] why it has not begun
 *
 * Blocks: no.
 */
enum trial_begin trial_begin(struct trial *t, const struct trial_query *query, char *message);

/* Return a file descriptor that is readable once the trial that has begun is answered. */
int trial_fd(const struct trial *t);

/* Take the answer: JSON, which the caller frees with free(); NULL: no memory. Returns false if there is none yet. */
bool trial_take(struct trial *t, char **answer);

/* End the trial without an answer. Returns whether its search has begun: then trials go on when that has ended. */
bool trial_give_up(struct trial *t);

/* Give the answer, or an error.
 *
 * scratch  is reset
 *
 * Thread: search worker.
 */
void trial_answer(struct trial *t, const struct answer *answer, struct region *scratch);

#endif
