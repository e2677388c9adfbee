/* SPDX-License-Identifier: Apache-2.0 */
/* A sketch: vectors as bytes, a quarter of their size. It gives an inner product up to a proven error, the slack.
 *
 * Symbols: v the item's vector; x its numbers rounded to -127..127; s its scale; e = v - s x. q the query's vector; n
 * its numbers rounded to integers; t their unit; d = q - t n. Then <q, v> = s t <n, x> + <q, e> + <d, s x>. The first
 * term is an exact sum of integers. The others are bounded by |q| |e| + |d| |s x|. vector_sketch.c proves that the
 * bound holds in f32 too.
 */
#ifndef ENGINE_VECTOR_VECTOR_SKETCH_H
#define ENGINE_VECTOR_VECTOR_SKETCH_H

#include "base/region.h"
#include "kernels/kernels.h"

struct vector_sketch {
  size_t dim;
  size_t n_groups; /* groups of SKETCH_GROUP numbers */
  size_t capacity; /* slots, in whole blocks */
  uint8_t *bytes;  /* [capacity][n_groups * SKETCH_GROUP]: x + 128 */
  float *scales;   /* [capacity]: s */
  float *errors;   /* [capacity]: |e|, plus the rounding errors */
  float *tails;    /* [capacity]: see vector_sketch_put(); NULL if the sketch has no tails */
};

/* Reserve memory for sketches of `capacity` vectors of dim <= 65536 numbers. A zero-initialised sketch may be given to
 * vector_sketch_fini() too. */
err_t vector_sketch_init(size_t dim, size_t capacity, bool has_tail, struct vector_sketch *out);
void vector_sketch_fini(struct vector_sketch *s);

/* Give back the memory of slots from..to-1, which are free. Slots from `to` on must not have been used since the last
 * call. */
void vector_sketch_trim(struct vector_sketch *s, size_t from, size_t to);

size_t vector_sketch_bytes_per_item(size_t dim, bool has_tail);

/* Write the sketch of a vector whose numbers are within +-1e9.
 *
 * tail  >= 0: the size of the part of the item that the vector omits; 0 if the sketch has no tails
 */
void vector_sketch_put(struct vector_sketch *s, uint32_t slot, const float *v, float tail);

/* Copy a slot's sketch to another slot. */
void vector_sketch_move(struct vector_sketch *s, uint32_t from, uint32_t to);

/* Copy the sketches of slots first..first+n-1 from another array. */
void vector_sketch_copy(struct vector_sketch *s, const struct vector_sketch *from, uint32_t first, size_t n);

/* A query, prepared for search. */
struct vector_sketch_query {
  int16_t *numbers; /* [n_groups * SKETCH_GROUP]: n */
  struct sketch_weights weights;
};

/* Prepare a query for sketches of this dimension.
 *
 * q     [dim]. The slack covers q and any query p with |p - q| <= 2^-22 |q|, for example one that was rounded to f32
 * tail  >= 0: the factor of an item's tail. An item's score is then <p, v> + r with |r| <= tail of the query * tail of
 *       the item
 *
 * Returns ERR_MEMORY. The numbers live in the region.
 */
err_t vector_sketch_query_init(size_t dim, const float *q, double tail, struct region *region,
                               struct vector_sketch_query *out);

/* Sketches that queries scan together. It borrows from the sketch, the list and the room. */
struct vector_sketch_set {
  const struct vector_sketch *sketch;
  size_t first;          /* slot of the first one, if there is no list */
  const uint32_t *slots; /* [n] or NULL: they lie one after the other */
  size_t n;
  struct sketch_items items;
  const uint8_t *blocks; /* the bytes, arranged for several queries; NULL: not arranged */
};

enum { VECTOR_SKETCH_QUERIES = 16 }; /* that are multiplied with an arranged set at a time */

/* Scratch memory for sets of up to n sketches, if they are listed or arranged. */
struct vector_sketch_room {
  float *scales, *errors, *tails; /* [n, in whole blocks] */
  uint8_t *blocks;                /* [n, in whole blocks] sketches, and SKETCH_BLOCKS_PAD bytes */
  int32_t *sums;                  /* [VECTOR_SKETCH_QUERIES][step] */
  size_t step;
};

/* Returns ERR_MEMORY. The room lives in the region. */
err_t vector_sketch_room_init(const struct vector_sketch *s, size_t n, bool may_arrange, struct region *region,
                              struct vector_sketch_room *out);

/* Slots first..first+n-1; first is a multiple of SKETCH_BLOCK_ITEMS. */
struct vector_sketch_set vector_sketch_set_of(const struct vector_sketch *s, size_t first, size_t n);

/* The listed slots, n of them. */
struct vector_sketch_set vector_sketch_set_listed(const struct vector_sketch *s, const uint32_t *slots, size_t n,
                                                  struct vector_sketch_room *room);

/* Arrange the bytes, so that each further query takes less time. It takes the time of about two queries. */
void vector_sketch_set_arrange(struct vector_sketch_set *set, const struct kernels *kernels,
                               struct vector_sketch_room *room);

/* Prefetch the bytes of slots first..first+n-1 into the second-level cache. */
void vector_sketch_prefetch(const struct vector_sketch *s, size_t first, size_t n);

/* Prefetch all that the bounds of the listed slots read. */
void vector_sketch_prefetch_listed(const struct vector_sketch *s, const uint32_t *slots, size_t n);

static inline uint32_t vector_sketch_set_slot(const struct vector_sketch_set *set, size_t i)
{
  return set->slots ? set->slots[i] : (uint32_t)(set->first + i);
}

/* Compute upper bounds on the scores, rounded to f32, with a set that is not arranged. bounds [n, in whole blocks]:
 * those from n on have no meaning. The bounds of slots that were never written have none either. */
void vector_sketch_bounds(const struct vector_sketch_set *set, const struct vector_sketch_query *q,
                          const struct kernels *kernels, float *bounds);

/* The same for several queries with an arranged set: multiply them, then compute the bounds of one after the other.
 *
 * q     [n_queries]: at most VECTOR_SKETCH_QUERIES
 * room  that of the set; it keeps the sums
 * i     one of the queries */
void vector_sketch_multiply(const struct vector_sketch_set *set, const struct vector_sketch_query *const *q,
                            size_t n_queries, const struct kernels *kernels, struct vector_sketch_room *room);
void vector_sketch_bounds_at(const struct vector_sketch_set *set, const struct vector_sketch_query *const *q, size_t i,
                             const struct kernels *kernels, const struct vector_sketch_room *room, float *bounds);

/* Return a lower bound on the score of a slot, from the upper bound that vector_sketch_bounds() or
 * vector_sketch_bounds_at() gave. */
float vector_sketch_lower_bound(const struct vector_sketch *s, const struct vector_sketch_query *q, uint32_t slot,
                                float upper);

#endif
