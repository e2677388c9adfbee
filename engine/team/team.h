/* SPDX-License-Identifier: Apache-2.0 */
/* A team: threads that help a search, so that one search uses several cores.
 *
 * A search runs in the thread that was asked, and in helpers that join it. Helpers belong to no search: each idle one
 * joins the next search that has room. The team counts all threads that search, helpers or not. A helper joins only
 * while fewer than n_running_max search, and gives way when there are more. So a single search uses all cores, and many
 * searches use one core each.
 *
 * Helpers sleep while there is nothing to do. Joining allocates nothing.
 */
#ifndef ENGINE_TEAM_H
#define ENGINE_TEAM_H

#include <stdatomic.h>

#include "base/err.h"

enum { TEAM_MEMBERS_MAX = 64 }; /* in one search */

struct team;
struct team_helper;

/* What a member does: member 0 is the caller, helpers have the numbers from 1 on. */
typedef void team_work(void *context, size_t member);

/* Start n_helpers threads.
 *
 * n_running_max  threads that search at a time before helpers give way, at least 1
 *
 * Returns ERR_SYSTEM if a thread cannot be started; ERR_MEMORY. */
err_t team_open(size_t n_helpers, size_t n_running_max, struct team **out);

/* End the threads. No search may be running. */
void team_close(struct team **t);

/* Count the calling thread as one that searches, and no longer. Thread: any. Blocks: no. */
void team_enter(struct team *t);
void team_leave(struct team *t);

/* One search and the helpers that have joined it. */
struct team_search {
  struct team *team;
  team_work *work;
  void *context;
  size_t n_max;     /* members, at most TEAM_MEMBERS_MAX */
  size_t n_members; /* that have joined, the caller included; their numbers are 0 to n_members - 1 */
  struct team_helper *helpers[TEAM_MEMBERS_MAX];
};

/* Begin a search. Fill in team, work, context and n_max before. Helpers join at once if there is room.
 *
 * Thread: one that has entered the team. Blocks: no. */
void team_begin(struct team_search *s);

/* Let more helpers join, if there is room. Thread: the one that began the search. Blocks: no. */
void team_recruit(struct team_search *s);

/* If too many threads search, wait until fewer do, or until *n_claimed reaches n_steps and somebody calls team_wake().
 * Thread: a helper, between two steps. */
void team_give_way(struct team_search *s, const _Atomic size_t *n_claimed, size_t n_steps);

/* Wake the helpers that give way: they look at *n_claimed again. Thread: any member. Blocks: no. */
void team_wake(struct team_search *s);

/* End the search: return when no helper works on it. A helper that was slower to wake up than the others to work never
 * begins: work() is not called for it. Thread: the one that began the search. */
void team_end(struct team_search *s);

#endif
