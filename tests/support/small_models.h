/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a small random model of each similarity, for tests of what all of them do. Include it after cmocka.h. */
#ifndef TESTS_SUPPORT_SMALL_MODELS_H
#define TESTS_SUPPORT_SMALL_MODELS_H

#include <limits.h>

#include "tests/support/mol_file.h"
#include "tests/support/vector_file.h"

enum { SMALL_DIM = 8, SMALL_SPLITS = 4, SMALL_SUBITEMS = 16 }; /* of vectors and codes */

/* What matrices and centroids are made of. With few whole numbers many scores are equal. */
enum small_numbers { SMALL_REAL, SMALL_WHOLE };

static inline void small_numbers_draw(struct dice *dice, enum small_numbers kind, float *out, size_t n)
{
  if (kind == SMALL_REAL)
    dice_fill(dice, out, n, 1.0f);
  for (size_t i = 0; kind == SMALL_WHOLE && i < n; i++)
    out[i] = (float)dice_below(dice, 7) - 3.0f;
}

/* Write FOLDER/SPACE.safetensors, and its path to `path` [PATH_MAX]. space: "dot", "bilinear", "pq" or "mol" */
static inline void small_model_write(const char *folder, const char *space, enum small_numbers kind, struct dice *dice,
                                     char *path)
{
  const struct mol_file mol = {
    .n_query = 2, .n_item = 3, .dim = 4, .hidden = 8, .vector_dim = SMALL_DIM, .weight = 1.0f
  };
  float numbers[SMALL_SUBITEMS * SMALL_DIM];

  snprintf(path, PATH_MAX, "%s/%s.safetensors", folder, space);
  small_numbers_draw(dice, kind, numbers, sizeof numbers / sizeof numbers[0]);
  if (strcmp(space, "dot") == 0)
    vector_file_write_plain(path, "dot", SMALL_DIM);
  else if (strcmp(space, "bilinear") == 0)
    vector_file_write_matrix(path, numbers, SMALL_DIM, SMALL_DIM);
  else if (strcmp(space, "pq") == 0)
    model_file_write_recjpq(path, numbers, SMALL_SPLITS, SMALL_SUBITEMS, SMALL_DIM / SMALL_SPLITS);
  else
    mol_file_write(path, &mol, dice);
}

#endif
