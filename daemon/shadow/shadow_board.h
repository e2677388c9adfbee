/* SPDX-License-Identifier: Apache-2.0 */
/* Which generations are compared with the current one, for which share of the queries, and what came of it.
 *
 * The catalogue thread says what is to be compared. Search workers look whether a query is. The shadow thread counts.
 * Sums and counts begin with the process and never decrease, so those of several daemons can be added.
 */
#ifndef DAEMON_SHADOW_SHADOW_BOARD_H
#define DAEMON_SHADOW_SHADOW_BOARD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/hist.h"
#include "daemon/config/config.h"
#include "daemon/shadow/shadow_measures.h"

/* Why a query of the share was not compared. */
enum shadow_drop {
  SHADOW_BUSY,    /* other queries were waiting for too long */
  SHADOW_REFUSED, /* the generation cannot search it: another dimension, or no such method */
  SHADOW_EMPTY,   /* neither generation has a hit */
  SHADOW_CHANGED, /* another generation became the current one, or one was removed */
  SHADOW_FAILED,  /* the search failed */
  SHADOW_DROPS
};

/* Return it as a word: "busy". */
const char *shadow_drop_word(enum shadow_drop why);

enum { SHADOW_PROBLEM_BYTES = 640, SHADOW_AT_ONCE = 16 };

/* A generation that is compared, or was. */
struct shadow_row {
  size_t space; /* index of config->spaces */
  const char *space_name;
  uint32_t generation;
  double share;                       /* of the queries; 0: it is compared no more */
  char problem[SHADOW_PROBLEM_BYTES]; /* why it is not compared, although it should be; "" */
  uint64_t n_compared;                /* queries */
  double overlap;                     /* sum over them */
  uint64_t n_ranked;                  /* those with two common hits or more */
  double correlation;                 /* sum over these */
  uint64_t n_dropped[SHADOW_DROPS];
  char reason[SHADOW_PROBLEM_BYTES]; /* of the newest query that was refused or failed; "": there was none */
  struct hist current_us, shadow_us; /* the searches of both, one query at a time in one thread */
  bool is_listed;                    /* since shadow_board_begin() */
};

struct shadow_board {
  pthread_mutex_t mutex;
  const struct config *config;
  _Atomic uint64_t *limits; /* [config->n_spaces] draws below it are compared with some generation */
  struct shadow_row **rows; /* [n] */
  size_t n;
  size_t capacity;
};

err_t shadow_board_init(const struct config *config, struct shadow_board *out);
void shadow_board_fini(struct shadow_board *b);

/* Between the two, any thread may read the rows. */
void shadow_board_lock(struct shadow_board *b);
void shadow_board_unlock(struct shadow_board *b);

/* Return a row, or NULL. Call between lock and unlock. */
struct shadow_row *shadow_board_find(const struct shadow_board *b, size_t space, uint32_t generation);

/* Say anew what is to be compared: begin, list each generation that there is, end. Begin locks and end unlocks. A
 * generation with a share gets a row, and keeps it as long as it is listed.
 *
 * problem  why it cannot be compared now; "": it can
 *
 * Returns ERR_MEMORY: call shadow_board_end() then too. Thread: catalogue. */
void shadow_board_begin(struct shadow_board *b);
err_t shadow_board_list(struct shadow_board *b, size_t space, uint32_t generation, double share, const char *problem);
void shadow_board_end(struct shadow_board *b);

/* Draw a number for a query: the same one in each daemon that reads it, and after each restart. */
uint64_t shadow_board_draw(int32_t partition, int64_t offset);

/* Is the query of this draw compared? Thread: any. Blocks: no. */
bool shadow_board_wants(struct shadow_board *b, size_t space, uint64_t draw);

/* Write the generations that it is compared with. Returns how many. Thread: any. */
size_t shadow_board_targets(struct shadow_board *b, size_t space, uint64_t draw, uint32_t generations[SHADOW_AT_ONCE]);

/* Count a query that was compared. Thread: any. */
void shadow_board_count(struct shadow_board *b, size_t space, uint32_t generation, const struct shadow_measures *m,
                        uint32_t current_us, uint32_t shadow_us);

/* Count a query that was not compared.
 *
 * reason  NULL: the one before is kept
 *
 * Thread: any. */
void shadow_board_drop(struct shadow_board *b, size_t space, uint32_t generation, enum shadow_drop why,
                       const char *reason);

#endif
