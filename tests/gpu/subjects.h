/* SPDX-License-Identifier: Apache-2.0 */
/* What tests that search all similarities need of each: a random model, and random data of items. */
#ifndef TESTS_GPU_SUBJECTS_H
#define TESTS_GPU_SUBJECTS_H

#include "base/item.h"
#include "tests/support/mol_file.h"
#include "tests/support/vector_file.h"

enum { SUBJECT_DIM_MAX = 96, SUBJECT_SPLITS_MAX = 9, SUBJECT_SUBITEMS = 256, SUBJECT_METHODS_MAX = 8 };

enum subject_kind { SUBJECT_DOT, SUBJECT_BILINEAR, SUBJECT_RECJPQ, SUBJECT_MOL };

struct subject {
  enum subject_kind kind;
  size_t n_items;  /* with the quick size, a part of them */
  size_t dim;      /* of a query */
  size_t n_splits; /* recjpq */
  struct mol_file mol;
  size_t n_exact; /* the first methods, which are exact */
  const char *methods[SUBJECT_METHODS_MAX];
};

/* Write a model. That of a bilinear space is diagonal, with a tail of small singular values. */
static inline void subject_write_model(const struct subject *s, const char *path, struct dice *dice)
{
  enum { N_CENTROIDS = SUBJECT_SUBITEMS * SUBJECT_DIM_MAX, N_MATRIX = SUBJECT_DIM_MAX * SUBJECT_DIM_MAX };
  float *numbers = calloc(N_CENTROIDS > N_MATRIX ? N_CENTROIDS : N_MATRIX, sizeof *numbers);

  switch (s->kind) {
  case SUBJECT_DOT:
    vector_file_write_plain(path, "dot", 0);
    break;
  case SUBJECT_BILINEAR:
    for (size_t i = 0; i < s->dim; i++)
      numbers[i * s->dim + i] = i < 20 ? 1.0f : 0.02f;
    vector_file_write_matrix(path, numbers, s->dim, s->dim);
    break;
  case SUBJECT_RECJPQ:
    dice_fill(dice, numbers, SUBJECT_SUBITEMS * s->dim, 1.0f);
    model_file_write_recjpq(path, numbers, s->n_splits, SUBJECT_SUBITEMS, s->dim / s->n_splits);
    break;
  case SUBJECT_MOL:
    mol_file_write(path, &s->mol, dice);
    break;
  }
  free(numbers);
}

/* The data of an item. Only those of the subject's kind are in its part. */
struct subject_data {
  float vector[SUBJECT_DIM_MAX];
  uint8_t codes[SUBJECT_SPLITS_MAX];
};

static inline void subject_draw_data(const struct subject *s, struct dice *dice, struct subject_data *out)
{
  dice_fill(dice, out->vector, s->dim, 1.0f);
  for (size_t m = 0; m < SUBJECT_SPLITS_MAX; m++)
    out->codes[m] = (uint8_t)dice_below(dice, SUBJECT_SUBITEMS);
}

/* Return the part, which borrows the data. */
static inline struct part subject_part(const struct subject *s, const char *space, const struct subject_data *data)
{
  struct part part = { .space = span_of_str(space) };

  if (s->kind == SUBJECT_RECJPQ)
    part.codes = span_of(data->codes, s->n_splits);
  else
    part.vector = (struct floats){ data->vector, s->dim };
  return part;
}

enum { SUBJECT_KEY_BYTES = 8 };

/* Write the key of item i, which is below 99991. The order of keys is not that of items. */
static inline struct span subject_key(size_t i, char text[SUBJECT_KEY_BYTES])
{
  return span_of(text, (size_t)snprintf(text, SUBJECT_KEY_BYTES, "%05zu", i * 7919 % 99991));
}

#endif
