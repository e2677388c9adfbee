/* SPDX-License-Identifier: Apache-2.0 */
/* A byte for each slot of a column of numbers: the bucket that its value is in. The buckets divide the numbers into 256
 * ranges with about as many values each. A range of values is then found by comparing bytes, an eighth of the memory;
 * only values in the buckets of its two ends are compared themselves.
 *
 * Buckets never make an answer wrong. They are divided anew when one of them has gained too large a share of the
 * values, so that they follow values that drift, such as times. A value that many slots have keeps a full bucket, but
 * that bucket gains nothing.
 *
 * Thread: one that writes, or any that read.
 */
#ifndef ENGINE_ATTRIBUTES_VALUE_BUCKETS_H
#define ENGINE_ATTRIBUTES_VALUE_BUCKETS_H

#include "base/err.h"

enum { VALUE_BUCKETS = 256 };

struct value_buckets {
  uint8_t *of_slot;                  /* [n_words * 64]; 0 for slots without a value */
  int64_t starts[VALUE_BUCKETS - 1]; /* rising: a value is in the bucket whose number is the count of starts <= value */
  uint64_t counts[VALUE_BUCKETS];    /* slots in each bucket */
  uint64_t n;                        /* their sum */
  int64_t low, high;                 /* all values lie between them, these included; if there are some */
  uint64_t n_writes;                 /* since the buckets were divided */
  uint64_t divided[VALUE_BUCKETS];   /* counts[] when they were divided */
  uint64_t n_divided;                /* their sum */
};

err_t value_buckets_init(size_t n_words, struct value_buckets *out);
void value_buckets_fini(struct value_buckets *b, size_t n_words);

/* Return the bucket of a value. */
uint8_t value_buckets_find(const struct value_buckets *b, int64_t value);

/* Put a slot into the bucket of its value. had_value: it is in a bucket already. Returns true if the buckets should be
 * divided anew. */
bool value_buckets_put(struct value_buckets *b, uint32_t slot, bool had_value, int64_t value);

/* Take a slot out of its bucket. */
void value_buckets_drop(struct value_buckets *b, uint32_t slot);

void value_buckets_move(struct value_buckets *b, uint32_t from, uint32_t to);

/* Divide the buckets anew, by a sample of the values. Time: the words up to the last slot that has a value.
 *
 * present  bits of the slots that have a value: [n_words]
 * values   [n_words * 64]
 * n        slots that have a value
 */
void value_buckets_divide(struct value_buckets *b, const uint64_t *present, const int64_t *values, size_t n_words,
                          uint64_t n);

/* The buckets that a range of values touches, and those that lie in it. */
struct value_range {
  int first, last;             /* it touches first..last */
  int inner_first, inner_last; /* these lie in it; none if inner_first > inner_last */
};

struct value_range value_buckets_range(const struct value_buckets *b, int64_t low, int64_t high);

/* The buckets that a set of values touches, and those of which every possible value is in the set: bits. */
struct value_bucket_set {
  uint8_t touched[VALUE_BUCKETS / 8];
  uint8_t inner[VALUE_BUCKETS / 8];
};

/* values [n], rising */
void value_buckets_set(const struct value_buckets *b, const int64_t *values, size_t n, struct value_bucket_set *out);

/* Bound the values in a bucket: low and high are included. Returns false if there are none. */
bool value_buckets_bounds(const struct value_buckets *b, unsigned bucket, int64_t *low, int64_t *high);

/* Return how many slots are in the buckets first..last. */
uint64_t value_buckets_count(const struct value_buckets *b, int first, int last);

#endif
