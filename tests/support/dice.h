/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for tests. The seed is printed, and the environment variable SLUICE_SEED sets it. */
#ifndef TESTS_SUPPORT_DICE_H
#define TESTS_SUPPORT_DICE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct dice {
  uint64_t state;
};

/* Get and print the seed of this run: SLUICE_SEED, or else the clock. */
static inline uint64_t dice_seed(void)
{
  const char *text = getenv("SLUICE_SEED");
  uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);

  printf("SLUICE_SEED=%llu\n", (unsigned long long)seed);
  return seed;
}

/* The next 64 random bits, by splitmix64. */
static inline uint64_t dice_u64(struct dice *d)
{
  uint64_t z = d->state += 0x9e3779b97f4a7c15u;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* A random number from 0 to n - 1. */
static inline size_t dice_below(struct dice *d, size_t n)
{
  return (size_t)(dice_u64(d) % n);
}

/* A random number from [-scale, scale). */
static inline float dice_float(struct dice *d, float scale)
{
  return ((float)(dice_u64(d) >> 40) * 0x1p-23f - 1.0f) * scale;
}

static inline void dice_fill(struct dice *d, float *out, size_t n, float scale)
{
  for (size_t i = 0; i < n; i++)
    out[i] = dice_float(d, scale);
}

#endif
