/* SPDX-License-Identifier: Apache-2.0 */
/* A catalogue over two spaces, RecJPQ and Mixture-of-Logits, and the items that it should hold. Include it after
 * cmocka.h. */
#ifndef TESTS_SUPPORT_TWO_SPACES_H
#define TESTS_SUPPORT_TWO_SPACES_H

#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum { TWO_MAX = 400, TWO_SPLITS = 3, TWO_SUBITEMS = 9, TWO_SPLIT_DIM = 2, TWO_MOL_DIM = 20, TWO_QUERY_DIM = 24 };

/* One item: which parts it has, and their contents. */
struct two_item {
  bool is_live, has_pq, has_mol;
  uint8_t codes[TWO_SPLITS];
  float vector[TWO_MOL_DIM];
};

struct two_spaces {
  struct temp_dir dir;
  char pq_path[PATH_MAX], mol_path[PATH_MAX];
  struct engine_space spaces[2];
  struct engine_config config;
};

static inline void two_spaces_init(struct two_spaces *t, struct dice *dice)
{
  float centroids[TWO_SPLITS * TWO_SUBITEMS * TWO_SPLIT_DIM];

  temp_dir_init(&t->dir);
  snprintf(t->pq_path, sizeof t->pq_path, "%s/pq.safetensors", t->dir.path);
  snprintf(t->mol_path, sizeof t->mol_path, "%s/edge/weights.safetensors", SLUICE_GOLDEN_DIR);
  dice_fill(dice, centroids, sizeof centroids / sizeof *centroids, 1.0f);
  model_file_write_recjpq(t->pq_path, centroids, TWO_SPLITS, TWO_SUBITEMS, TWO_SPLIT_DIM);
  t->spaces[0] = (struct engine_space){ .name = "pq", .model_path = t->pq_path };
  t->spaces[1] = (struct engine_space){ .name = "mol", .model_path = t->mol_path };
  t->config =
      (struct engine_config){ t->spaces, 2, TWO_MAX, 2 * TWO_MAX, 8, isa_detect(), ENGINE_CPU, 1, { 0 }, { 0 } };
}

static inline void two_spaces_fini(struct two_spaces *t)
{
  temp_dir_fini(&t->dir);
}

/* Print the key of an item. Keys have several lengths and do not sort by item number. */
static inline struct span two_key(size_t i, char text[32])
{
  return span_of(text, (size_t)sprintf(text, "%03zu%.*s", i * 37 % 1000, (int)(i % 11), "keykeykeyke"));
}

/* Fill the parts of an item for a change. Returns their number. */
static inline size_t two_parts(const struct two_item *item, bool with_pq, bool with_mol, struct part parts[2])
{
  size_t n = 0;

  if (with_pq)
    parts[n++] = (struct part){ .space = span_of_str("pq"), .codes = span_of(item->codes, TWO_SPLITS) };
  if (with_mol)
    parts[n++] = (struct part){ .space = span_of_str("mol"), .vector = { item->vector, TWO_MOL_DIM } };
  return n;
}

#endif
