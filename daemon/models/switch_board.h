/* SPDX-License-Identifier: Apache-2.0 */
/* Which generation a shard searches while the shards of a catalogue switch, for a query that names none.
 *
 * Each shard reads the switch at a moment of its own. If what is current then decided, the parts of a query could be of
 * two generations, and could not be joined. So the time of the query's record decides, which is the same for all:
 * before that of the switch, the former generation is searched. A switch that is asked for a little ahead of its time,
 * as sluicectl does, is known to all shards when its time comes.
 */
#ifndef DAEMON_MODELS_SWITCH_BOARD_H
#define DAEMON_MODELS_SWITCH_BOARD_H

#include <pthread.h>

#include "base/err.h"
#include "base/model_change.h"

struct switch_row;

struct switch_board {
  pthread_mutex_t mutex;
  struct switch_row *rows; /* [n_spaces] */
};

err_t switch_board_init(size_t n_spaces, struct switch_board *out);
void switch_board_fini(struct switch_board *b);

/* More switches than there are within a minute or two. */
enum { SWITCH_BOARD_ROWS = 8 };

/* Say which generations a space had last, before the newest of them becomes current.
 *
 * switches  [n] up to SWITCH_BOARD_ROWS, by rising time. `to` is 0 for a generation that cannot be searched: the
 * current one stands in for it
 *
 * Thread: catalogue. */
void switch_board_set(struct switch_board *b, size_t space, const struct model_switch *switches, size_t n);

/* Return the generation for a query of this time, or 0: the current one. That is also for a query from more than a
 * minute before the switch: its clock may be wrong, and whoever switches back from a bad model wants it now.
 *
 * time_ms  of the query's record, in milliseconds since 1970; -1: it has none
 *
 * Thread: any. */
uint32_t switch_board_at(struct switch_board *b, size_t space, int64_t time_ms);

#endif
