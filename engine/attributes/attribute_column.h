/* SPDX-License-Identifier: Apache-2.0 */
/* What is behind `struct attribute_columns`. Private to the files of this folder. */
#ifndef ENGINE_ATTRIBUTES_ATTRIBUTE_COLUMN_H
#define ENGINE_ATTRIBUTES_ATTRIBUTE_COLUMN_H

#include <math.h>
#include <pthread.h>

#include "base/bits.h"
#include "base/change_log.h"
#include "engine/attributes/attribute_columns.h"
#include "engine/attributes/code_set.h"
#include "engine/attributes/dictionary.h"
#include "engine/attributes/slot_marks.h"
#include "engine/attributes/value_buckets.h"

/* One attribute. A type has the arrays that its comment names. Slots without the attribute have zeros, but numbers[]
 * may have a former value. */
struct attribute_column {
  enum attribute_type type;
  size_t n_words;
  uint64_t n_present;
  uint64_t n_true;              /* bool */
  uint64_t *present;            /* [n_words] a bit for each slot: it has the attribute */
  uint64_t *truths;             /* bool: [n_words] */
  int64_t *numbers;             /* integer, time, number: [n_words * 64]. Numbers as attribute_column_key() */
  struct value_buckets buckets; /* of numbers[] */
  uint32_t *codes;              /* keyword: [n_words * 64] */
  struct code_set *sets;        /* keywords: [n_words * 64] */
  struct dictionary texts;      /* keyword, keywords */
  struct change_log values;     /* by slot */
  struct slot_marks marks;      /* without memory unless attribute_columns_mark() was called */
  pthread_mutex_t lock;         /* of texts, while several threads load */
};

struct attribute_columns {
  const struct kernels *kernels;
  size_t n_words; /* of 64 slots */
  size_t n;
  struct attribute_column *v; /* [n] by attribute */
};

err_t attribute_column_init(enum attribute_type type, size_t n_words, struct attribute_column *out);
void attribute_column_fini(struct attribute_column *c);

/* The functions of attribute_columns.h, for one attribute. */
err_t attribute_column_put(struct attribute_column *c, uint32_t slot, const struct value *value);
void attribute_column_drop(struct attribute_column *c, uint32_t slot);
err_t attribute_column_move(struct attribute_column *c, uint32_t from, uint32_t to);
void attribute_column_trim(struct attribute_column *c, size_t from, size_t to);
err_t attribute_column_load(struct attribute_column *c, uint32_t slot, const struct value *value);
err_t attribute_column_copy(struct attribute_column *c, const struct attribute_column *from, size_t first, size_t n);
err_t attribute_column_finish(struct attribute_column *c, size_t n_slots);
struct attribute_cell attribute_column_cell(const struct attribute_column *c, uint32_t slot);
struct value attribute_column_value(const struct attribute_column *c, uint32_t slot);
err_t attribute_column_copy_value(const struct attribute_column *c, uint32_t slot, struct region *region,
                                  struct value *out);
bool attribute_column_number(const struct attribute_column *c, uint32_t slot, double *out);
bool attribute_column_range(const struct attribute_column *c, double *low, double *high);
bool attribute_column_bucket_range(const struct attribute_column *c, unsigned bucket, double *low, double *high);

/* Return what numbers[] keeps of a value. */
int64_t attribute_column_key_of(const struct attribute_column *c, const struct value *value);

/* Find the codes of a set of texts, rising, each once. Returns ERR_ITEM if they are too many; ERR_MEMORY. */
err_t attribute_column_find_codes(struct attribute_column *c, const struct value *value,
                                  uint32_t codes[ATTRIBUTE_SET_MAX], uint32_t *n);

/* Map a number to an integer, so that integers are in the order of the numbers. -0 becomes 0. */
static inline int64_t attribute_column_key(double number)
{
  int64_t bits;

  number += 0.0;
  memcpy(&bits, &number, sizeof bits);
  return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

/* The number that the integer stands for. */
static inline double attribute_column_double(int64_t key)
{
  int64_t bits = key ^ (int64_t)((uint64_t)(key >> 63) >> 1);
  double number;

  memcpy(&number, &bits, sizeof number);
  return number;
}

/* The same for a bound, which may be infinite: then it bounds all integers. */
static inline int64_t attribute_column_bound(double number)
{
  if (isinf(number))
    return number < 0 ? INT64_MIN : INT64_MAX;
  return attribute_column_key(number);
}

#endif
