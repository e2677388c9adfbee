/* SPDX-License-Identifier: Apache-2.0 */
/* A few rows under a lock. Workers that have no query to compare, which are nearly all, read one atomic number. */
#include "daemon/shadow/shadow_board.h"

#include <stdio.h>

#include "base/mem.h"

/* Draws are from [0, 2^53): a double holds each of them exactly. */
#define DRAWS 0x1p53

const char *shadow_drop_word(enum shadow_drop why)
{
  static const char *const words[] = {
    [SHADOW_BUSY] = "busy",       [SHADOW_REFUSED] = "refused", [SHADOW_EMPTY] = "empty",
    [SHADOW_CHANGED] = "changed", [SHADOW_FAILED] = "failed",
  };

  return words[why];
}

err_t shadow_board_init(const struct config *config, struct shadow_board *out)
{
  *out = (struct shadow_board){ .config = config };
  pthread_mutex_init(&out->mutex, NULL);
  return mem_array(config->n_spaces, sizeof *out->limits, &out->limits);
}

void shadow_board_fini(struct shadow_board *b)
{
  for (size_t i = 0; i < b->n; i++)
    mem_free(&b->rows[i]);
  mem_free(&b->rows);
  mem_free(&b->limits);
  pthread_mutex_destroy(&b->mutex);
}

void shadow_board_lock(struct shadow_board *b)
{
  pthread_mutex_lock(&b->mutex);
}

void shadow_board_unlock(struct shadow_board *b)
{
  pthread_mutex_unlock(&b->mutex);
}

struct shadow_row *shadow_board_find(const struct shadow_board *b, size_t space, uint32_t generation)
{
  for (size_t i = 0; i < b->n; i++) {
    if (b->rows[i]->space == space && b->rows[i]->generation == generation)
      return b->rows[i];
  }
  return NULL;
}

/* ---- What is to be compared ---- */

void shadow_board_begin(struct shadow_board *b)
{
  shadow_board_lock(b);
  for (size_t i = 0; i < b->n; i++)
    b->rows[i]->is_listed = false;
}

static err_t add_row(struct shadow_board *b, size_t space, uint32_t generation, struct shadow_row **out)
{
  TRY(mem_grow(b->n + 1, sizeof *b->rows, &b->capacity, &b->rows));
  TRY(mem_array(1, sizeof **out, out));
  (*out)->space = space;
  (*out)->space_name = b->config->spaces[space].name;
  (*out)->generation = generation;
  b->rows[b->n++] = *out;
  return ERR_OK;
}

err_t shadow_board_list(struct shadow_board *b, size_t space, uint32_t generation, double share, const char *problem)
{
  struct shadow_row *row = shadow_board_find(b, space, generation);

  if (!row && share <= 0)
    return ERR_OK;
  if (!row)
    TRY(add_row(b, space, generation, &row));
  row->share = share;
  snprintf(row->problem, sizeof row->problem, "%s", problem);
  row->is_listed = true;
  return ERR_OK;
}

static void drop_row(struct shadow_board *b, size_t i)
{
  mem_free(&b->rows[i]);
  b->rows[i] = b->rows[--b->n];
}

/* Return the draws that are compared with a generation: those below it. */
static uint64_t limit_of(const struct shadow_row *row)
{
  return *row->problem ? 0 : (uint64_t)(row->share * DRAWS);
}

void shadow_board_end(struct shadow_board *b)
{
  for (size_t i = b->n; i-- > 0;) {
    if (!b->rows[i]->is_listed)
      drop_row(b, i);
  }
  for (size_t space = 0; space < b->config->n_spaces; space++) {
    uint64_t limit = 0;
    for (size_t i = 0; i < b->n; i++) {
      if (b->rows[i]->space == space && limit_of(b->rows[i]) > limit)
        limit = limit_of(b->rows[i]);
    }
    atomic_store_explicit(&b->limits[space], limit, memory_order_relaxed);
  }
  shadow_board_unlock(b);
}

/* ---- Which queries ---- */

/* The finalizer of splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t mix(uint64_t z)
{
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t shadow_board_draw(int32_t partition, int64_t offset)
{
  return mix(mix((uint64_t)(uint32_t)partition + 0x9e3779b97f4a7c15u) + (uint64_t)offset) >> 11;
}

bool shadow_board_wants(struct shadow_board *b, size_t space, uint64_t draw)
{
  return draw < atomic_load_explicit(&b->limits[space], memory_order_relaxed);
}

size_t shadow_board_targets(struct shadow_board *b, size_t space, uint64_t draw, uint32_t generations[SHADOW_AT_ONCE])
{
  size_t n = 0;

  shadow_board_lock(b);
  for (size_t i = 0; i < b->n && n < SHADOW_AT_ONCE; i++) {
    if (b->rows[i]->space == space && draw < limit_of(b->rows[i]))
      generations[n++] = b->rows[i]->generation;
  }
  shadow_board_unlock(b);
  return n;
}

/* ---- What came of it ---- */

void shadow_board_count(struct shadow_board *b, size_t space, uint32_t generation, const struct shadow_measures *m,
                        uint32_t current_us, uint32_t shadow_us)
{
  shadow_board_lock(b);
  struct shadow_row *row = shadow_board_find(b, space, generation);
  if (row) {
    row->n_compared++;
    row->overlap += m->overlap;
    row->n_ranked += m->is_ranked;
    row->correlation += m->correlation;
    hist_add(&row->current_us, current_us);
    hist_add(&row->shadow_us, shadow_us);
  }
  shadow_board_unlock(b);
}

void shadow_board_drop(struct shadow_board *b, size_t space, uint32_t generation, enum shadow_drop why,
                       const char *reason)
{
  shadow_board_lock(b);
  struct shadow_row *row = shadow_board_find(b, space, generation);
  if (row) {
    row->n_dropped[why]++;
    if (reason)
      snprintf(row->reason, sizeof row->reason, "%s", reason);
  }
  shadow_board_unlock(b);
}
