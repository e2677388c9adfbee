/* SPDX-License-Identifier: Apache-2.0 */
/* Heap blocks of exactly the requested size, in which the address sanitizer detects reads past the end; and fills:
 * kinds of test data. */
#ifndef TESTS_SUPPORT_BLOCKS_H
#define TESTS_SUPPORT_BLOCKS_H

#include <stdlib.h>
#include <string.h>

#include "tests/support/dice.h"

static inline void *block_new(size_t count, size_t size)
{
  size_t bytes = count * size;
  void *p = malloc(bytes > 0 ? bytes : 1);

  if (!p)
    abort();
  memset(p, 0xa5, bytes);
  return p;
}

/* The same, aligned to 64. Free it with free(). */
static inline void *block_new_aligned(size_t count, size_t size)
{
  size_t bytes = count * size;
  void *p;

  if (posix_memalign(&p, 64, bytes > 0 ? bytes : 1) != 0)
    abort();
  memset(p, 0xa5, bytes);
  return p;
}

enum fill { FILL_RANDOM, FILL_LARGE, FILL_ZEROS, FILL_TINY, FILL_EQUAL, FILL_MIXED, N_FILLS };

static inline float fill_one(struct dice *d, enum fill fill, float equal)
{
  switch (fill) {
  case FILL_LARGE:
    return dice_float(d, 1e4f);
  case FILL_ZEROS:
    return dice_below(d, 2) ? 0.0f : -0.0f;
  case FILL_TINY: /* denormal numbers, and normal numbers with denormal products */
    return dice_float(d, dice_below(d, 2) ? 1e-40f : 1e-20f);
  case FILL_EQUAL:
    return equal;
  case FILL_MIXED:
    return fill_one(d, (enum fill)dice_below(d, FILL_EQUAL), equal);
  default:
    return dice_float(d, 1.0f);
  }
}

static inline void fill_floats(struct dice *d, enum fill fill, float *out, size_t n)
{
  float equal = dice_float(d, 2.0f);

  for (size_t i = 0; i < n; i++)
    out[i] = fill_one(d, fill, equal);
}

static inline float *floats_filled(struct dice *d, enum fill fill, size_t n)
{
  float *p = block_new(n, sizeof *p);

  fill_floats(d, fill, p, n);
  return p;
}

static inline float *floats_filled_aligned(struct dice *d, enum fill fill, size_t n)
{
  float *p = block_new_aligned(n, sizeof *p);

  fill_floats(d, fill, p, n);
  return p;
}

#endif
