/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which searches read the slots of vector columns.
 *
 * A chunk: slots that a search handles in one step, at most VECTOR_CHUNK_ITEMS. All queries of a batch share what is
 * read of it. Neighbours in the catalogue are often similar, and the first chunks should be a fair sample, so they are
 * spread over all slots. */
#ifndef ENGINE_VECTOR_VECTOR_CHUNKS_H
#define ENGINE_VECTOR_VECTOR_CHUNKS_H

#include "engine/search/spread.h"
#include "engine/vector/vector_columns.h"

enum { VECTOR_CHUNK_ITEMS = 1024 };

struct vector_chunks {
  size_t n_slots;
  size_t n_items;      /* slots in a chunk: a multiple of 64, so that it begins with a word of bits */
  struct spread order; /* of all chunks */
};

struct vector_chunk {
  size_t first; /* slot */
  size_t n;     /* slots */
};

/* Divide all slots into chunks, and get the i-th chunk in their order. */
struct vector_chunks vector_chunks_of(const struct vector_columns *c, size_t n_slots);
struct vector_chunk vector_chunk_at(const struct vector_chunks *chunks, size_t i);

#endif
