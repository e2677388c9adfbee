/* SPDX-License-Identifier: Apache-2.0 */
/* The history of each space under a lock: a query looks once. */
#include "daemon/models/switch_board.h"

#include <string.h>

#include "base/mem.h"

/* A query whose record is older than the switch by more is not of the moment of the switch. A shard may have been away,
 * or lag, for as long. */
enum { BEFORE_MAX_MS = 60000 };

struct switch_row {
  struct model_switch switches[SWITCH_BOARD_ROWS]; /* [n] */
  size_t n;
};

err_t switch_board_init(size_t n_spaces, struct switch_board *out)
{
  *out = (struct switch_board){ 0 };
  pthread_mutex_init(&out->mutex, NULL);
  return mem_array(n_spaces, sizeof *out->rows, &out->rows);
}

void switch_board_fini(struct switch_board *b)
{
  mem_free(&b->rows);
  pthread_mutex_destroy(&b->mutex);
}

void switch_board_set(struct switch_board *b, size_t space, const struct model_switch *switches, size_t n)
{
  pthread_mutex_lock(&b->mutex);
  b->rows[space].n = n;
  if (n > 0)
    memcpy(b->rows[space].switches, switches, n * sizeof *switches);
  pthread_mutex_unlock(&b->mutex);
}

/* Return how many switches were at this time, or before it. */
static size_t count_until(const struct switch_row *row, int64_t time_ms)
{
  size_t n = row->n;

  while (n > 0 && row->switches[n - 1].at_ms > time_ms)
    n--;
  return n;
}

uint32_t switch_board_at(struct switch_board *b, size_t space, int64_t time_ms)
{
  const struct switch_row *row = &b->rows[space];
  uint32_t generation = 0;

  pthread_mutex_lock(&b->mutex);
  size_t n = count_until(row, time_ms);
  if (time_ms >= 0 && n > 0 && n < row->n && row->switches[n].at_ms - time_ms <= BEFORE_MAX_MS)
    generation = row->switches[n - 1].to;
  pthread_mutex_unlock(&b->mutex);
  return generation;
}
