/* SPDX-License-Identifier: Apache-2.0 */
/* Threads claim the next piece until none is left. */
#include "engine/team/divide.h"

#include <sched.h>

#include "base/size.h"

struct division {
  struct team_search search;
  divide_work *work;
  void *context;
  size_t n, n_piece;
  struct region *scratch; /* of member 0 */
  _Atomic bool has_failed;
  struct err_kept failure;               /* of the first one that failed */
  _Alignas(64) _Atomic size_t n_claimed; /* elements; written by all members */
};

static bool claim(struct division *d, size_t member, size_t *first, size_t *end)
{
  if (member > 0)
    team_give_way(&d->search, &d->n_claimed, d->n);
  *first = atomic_load(&d->n_claimed);
  do {
    if (*first >= d->n)
      return false;
    *end = *first + size_min(d->n_piece, d->n - *first);
  } while (!atomic_compare_exchange_weak(&d->n_claimed, first, *end));
  return true;
}

static err_t do_pieces(struct division *d, size_t member, struct region *scratch)
{
  size_t first, end;

  while (claim(d, member, &first, &end)) {
    struct region_mark mark = region_mark(scratch);
    TRY(d->work(d->context, first, end, scratch));
    region_rewind(scratch, mark);
  }
  return ERR_OK;
}

static void work_of_member(void *context, size_t member)
{
  AUTO(region_fini) struct region own = { 0 };
  struct division *d = context;
  err_code_t err = do_pieces(d, member, member == 0 ? d->scratch : &own);

  if (err != ERR_OK && !atomic_exchange(&d->has_failed, true))
    err_keep(err, &d->failure);
  if (err != ERR_OK)
    atomic_store(&d->n_claimed, d->n);
  team_wake(&d->search); /* helpers that give way see that nothing is left */
}

static bool stands_back(void)
{
  return sched_getscheduler(0) == SCHED_IDLE;
}

err_t divide(struct team *team, size_t n, size_t n_piece, divide_work *work, void *context, struct region *scratch)
{
  struct division d = { .work = work, .context = context, .n = n, .n_piece = n_piece, .scratch = scratch };

  if (!team || n <= n_piece || stands_back())
    return do_pieces(&d, 0, scratch);
  d.search = (struct team_search){
    .team = team,
    .work = work_of_member,
    .context = &d,
    .n_max = size_min((n + n_piece - 1) / n_piece, TEAM_MEMBERS_MAX),
  };
  team_enter(team);
  team_begin(&d.search);
  work_of_member(&d, 0);
  team_end(&d.search);
  team_leave(team);
  return err_give_back(&d.failure);
}
