/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a world's bounds. No score may be outside its bounds. A scan must append all items whose scores reach
 * the floor, and few others. */
#ifndef TESTS_GPU_BOUNDS_CHECKS_H
#define TESTS_GPU_BOUNDS_CHECKS_H

#include "tests/gpu/bounds_world.h"

/* Bound all items, in lists with a different order each; some lists have overflowed. */
static inline void bound_all(const struct mol_bounds_input *in)
{
  static uint32_t slots[QUERIES_MAX * ITEMS_MAX];
  static float uppers[QUERIES_MAX * ITEMS_MAX], lowers[QUERIES_MAX * ITEMS_MAX];
  uint32_t n[QUERIES_MAX];

  for (size_t q = 0; q < w.n_queries; q++) {
    n[q] = (uint32_t)(w.n_items + q); /* above capacity: overflowed */
    for (size_t i = 0; i < w.n_items; i++)
      slots[q * w.n_items + i] = (uint32_t)((i * 7 + q) % w.n_items);
  }
  CHECK(w.n_items % 7, "the orders would repeat items");
  size_t bytes = w.n_queries * w.n_items * 4;
  struct device_lists lists = { w.n_queries, w.n_items, to_device(n, w.n_queries * 4), to_device(slots, bytes),
                                to_device(uppers, bytes) };
  float *device_lowers = to_device(lowers, bytes);
  CHECK_OK(mol_bounds_lists(stream, in, &lists, device_lowers));
  from_device(uppers, lists.scores, bytes);
  from_device(lowers, device_lowers, bytes);
  for (size_t i = 0; i < w.n_queries * w.n_items; i++) {
    w.uppers[i / w.n_items][slots[i]] = uppers[i];
    w.lowers[i / w.n_items][slots[i]] = lowers[i];
  }
  drop(lists.n);
  drop(lists.slots);
  drop(lists.scores);
  drop(device_lowers);
}

static inline void check_bounds(const char *what)
{
  for (size_t q = 0; q < w.n_queries; q++) {
    for (size_t i = 0; i < w.n_items; i++)
      CHECK(w.uppers[q][i] == INFINITY || (w.lowers[q][i] <= w.scores[q][i] && w.scores[q][i] <= w.uppers[q][i]),
            "%s, %zux%zux%zu, query %zu, item %zu: %.9g is not within %.9g and %.9g", what, w.shape.n_query_components,
            w.shape.n_item_components, w.shape.component_dim, q, i, (double)w.scores[q][i], (double)w.lowers[q][i],
            (double)w.uppers[q][i]);
  }
}

/* May the scan append this item? Its test and the upper bound are the same inequality with other roundings. But its
 * squares contain the floor, and overflow earlier. */
static inline bool may_be_appended(size_t q, size_t i, float floor)
{
  float slack = 0.05f * (w.uppers[q][i] - w.scores[q][i]) + 1e-4f * (1 + fabsf(floor));

  return w.present[i] && (w.may_overflow || !(w.uppers[q][i] < floor - slack));
}

/* Check that a scan of n slots from `first` on appends the items whose scores reach these floors, and of the others
 * only those whose bounds do. */
static inline void check_append(const struct mol_bounds_input *in, size_t first, size_t n, const float *floors)
{
  static uint32_t slots[QUERIES_MAX * ITEMS_MAX];
  static float found[QUERIES_MAX * ITEMS_MAX];
  uint32_t lengths[QUERIES_MAX] = { 0 };
  size_t bytes = w.n_queries * w.n_items * 4;
  float *device_floors = to_device(floors, w.n_queries * sizeof *floors);
  struct device_lists lists = { w.n_queries, w.n_items, to_device(lengths, w.n_queries * 4), to_device(slots, bytes),
                                to_device(found, bytes) };

  CHECK_OK(mol_bounds_append(stream, in, first, n, device_floors, &lists));
  from_device(lengths, lists.n, w.n_queries * 4);
  from_device(slots, lists.slots, bytes);
  from_device(found, lists.scores, bytes);
  for (size_t q = 0; q < w.n_queries; q++) {
    bool is_there[ITEMS_MAX] = { false };
    for (size_t e = 0; e < lengths[q]; e++) {
      uint32_t slot = slots[q * w.n_items + e];
      CHECK(slot >= first && slot < first + n && !is_there[slot], "query %zu: slot %u", q, slot);
      is_there[slot] = true;
      CHECK(may_be_appended(q, slot, floors[q]), "%zux%zu, query %zu, slot %u: score %.9g, bound %.9g, floor %.9g",
            w.shape.n_item_components, w.shape.component_dim, q, slot, (double)w.scores[q][slot],
            (double)w.uppers[q][slot], (double)floors[q]);
      CHECK(found[q * w.n_items + e] == INFINITY, "query %zu, slot %u: %.9g", q, slot,
            (double)found[q * w.n_items + e]);
    }
    for (size_t i = first; i < first + n; i++)
      CHECK(is_there[i] || !w.present[i] || w.scores[q][i] < floors[q],
            "query %zu, slot %zu: score %.9g, floor %.9g, bound %.9g", q, i, (double)w.scores[q][i],
            (double)floors[q], (double)w.uppers[q][i]);
  }
  drop(device_floors);
  drop(lists.n);
  drop(lists.slots);
  drop(lists.scores);
}

/* Check the largest lower bounds of every stride-th tile. */
static inline void check_maxima(const struct mol_bounds_input *in, size_t stride)
{
  enum { TILE = 64, EACH = TILE / MOL_BOUNDS_MAXIMA };
  static float found[QUERIES_MAX * (ITEMS_MAX / TILE + 1) * MOL_BOUNDS_MAXIMA];
  size_t n_all = (w.n_items + TILE - 1) / TILE, n_tiles = (n_all + stride - 1) / stride;
  size_t n = n_tiles * MOL_BOUNDS_MAXIMA, bytes = w.n_queries * n * sizeof *found;
  float *maxima = to_device(found, bytes);

  CHECK_OK(mol_bounds_maxima(stream, in, w.n_items, stride, n_tiles, maxima));
  from_device(found, maxima, bytes);
  for (size_t q = 0; q < w.n_queries; q++) {
    for (size_t g = 0; g < n; g++) {
      size_t first = g / MOL_BOUNDS_MAXIMA * stride * TILE + g % MOL_BOUNDS_MAXIMA * EACH;
      float due = -INFINITY;
      for (size_t i = first; i < first + EACH && i < w.n_items; i++)
        due = w.present[i] && w.lowers[q][i] > due ? w.lowers[q][i] : due;
      CHECK(found[q * n + g] == due, "query %zu, stride %zu, group %zu: %.9g, not %.9g", q, stride, g,
            (double)found[q * n + g], (double)due);
    }
  }
  drop(maxima);
}

static inline float best_score(size_t q)
{
  float best = -INFINITY;

  for (size_t i = 0; i < w.n_items; i++)
    best = fmaxf(best, w.scores[q][i]);
  return best;
}

static inline float draw_floor(size_t q)
{
  size_t item = dice_below(&dice, w.n_items);

  switch (dice_below(&dice, 5)) {
  case 0: return -INFINITY;
  case 1: return w.uppers[q][item];
  case 2: return 2 * fabsf(best_score(q));
  default: return w.scores[q][item];
  }
}

static inline void check_appends(const struct mol_bounds_input *in)
{
  float floors[QUERIES_MAX];
  size_t first = dice_below(&dice, w.n_items / 64 + 1) * 64;

  for (size_t q = 0; q < w.n_queries; q++)
    floors[q] = best_score(q);
  check_append(in, 0, w.n_items, floors);
  for (size_t q = 0; q < w.n_queries; q++)
    floors[q] = draw_floor(q);
  check_append(in, 0, w.n_items, floors);
  if (first < w.n_items)
    check_append(in, first, 1 + dice_below(&dice, w.n_items - first), floors);
  check_maxima(in, 1 + dice_below(&dice, 4));
}

/* Run all checks on the current world. */
static inline void check_world(const char *what, bool is_scanned)
{
  struct mol_gate gate = gate_of_world();
  struct mol_half_gate *bound;

  CHECK_OK(mol_half_gate_open(&w.shape, &gate, stream, &bound));
  CHECK(bound, "%s: no bound", what);
  struct mol_bounds_input in = input_open(bound);
  score_all();
  bound_all(&in);
  check_bounds(what);
  if (is_scanned)
    check_appends(&in);
  input_close(&in);
  mol_half_gate_close(&bound);
}

#endif
