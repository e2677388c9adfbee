/* SPDX-License-Identifier: Apache-2.0 */
/* A filter as a program for a device that has the attribute columns: comparisons of one slot's values, and the logic
 * between them in postfix order. Every slot runs the same steps with a stack of bits.
 *
 * engine/attributes/attribute_program.h makes programs; kernels/cuda/program_words.h runs them.
 */
#ifndef KERNELS_FILTER_PROGRAM_H
#define KERNELS_FILTER_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

/* What a step pushes; or what it does to the bits that were pushed last. A slot without the attribute satisfies no
 * comparison. */
enum filter_step_kind {
  FILTER_STEP_ALL,   /* true */
  FILTER_STEP_NONE,  /* false */
  FILTER_STEP_HAS,   /* the slot has the attribute */
  FILTER_STEP_TRUE,  /* bool: it is true */
  FILTER_STEP_FALSE, /* bool: it is there, and false */
  FILTER_STEP_RANGE, /* integer, time, number: low <= value <= high */
  FILTER_STEP_ONE,   /* integer, time, number; or keyword, by its code: it is one of the values */
  FILTER_STEP_AND,   /* of two bits */
  FILTER_STEP_OR,    /* of two bits */
  FILTER_STEP_NOT,   /* of one bit */
};

struct filter_step {
  uint32_t kind;      /* enum filter_step_kind */
  uint32_t attribute; /* its number */
  int64_t low, high;  /* FILTER_STEP_RANGE */
  uint32_t first, n;  /* FILTER_STEP_ONE: values[first..first+n-1], rising, each once; n > 0 */
};

enum {
  FILTER_PROGRAM_DEPTH = 64,   /* bits that are on the stack at once, at most */
  FILTER_PROGRAM_VALUES = 4096 /* values of all steps, at most */
};

struct filter_program {
  const struct filter_step *steps; /* [n_steps] in the end, one bit is left */
  const int64_t *values;           /* [n_values] */
  size_t n_steps, n_values;
  uint64_t most; /* at most so many slots pass */
};

#endif
