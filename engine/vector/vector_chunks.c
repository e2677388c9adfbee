/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of chunks. */
#include "engine/vector/vector_chunks.h"

#include "base/size.h"

/* Bytes of the sketches of a chunk: they stay in the second-level cache while all queries of a batch scan them. */
enum { CHUNK_BYTES = 256 * 1024, CHUNK_ITEMS_MIN = 128 };

struct vector_chunks vector_chunks_of(const struct vector_columns *c, size_t n_slots)
{
  size_t n_fitting = CHUNK_BYTES / (c->sketch.n_groups * SKETCH_GROUP) / 64 * 64;
  size_t n_items = size_min(size_max(n_fitting, CHUNK_ITEMS_MIN), VECTOR_CHUNK_ITEMS);

  return (struct vector_chunks){ n_slots, n_items, spread_over((n_slots + n_items - 1) / n_items) };
}

struct vector_chunk vector_chunk_at(const struct vector_chunks *chunks, size_t i)
{
  size_t first = spread_at(&chunks->order, i) * chunks->n_items;

  return (struct vector_chunk){ first, size_min(chunks->n_slots - first, chunks->n_items) };
}
