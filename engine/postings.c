#include "engine/postings.h"

#include <assert.h>

#include "base/mem.h"

static_assert(sizeof(struct postings_chunk) == 128, "a chunk is two cache lines");

static size_t pool_chunks(size_t n_splits, size_t n_subitems, size_t capacity)
{
  return n_splits * (capacity / POSTINGS_CHUNK_SLOTS + n_subitems + 1);
}

err_t postings_init(size_t n_splits, size_t n_subitems, size_t capacity, struct postings *out)
{
  struct postings p = {
    .n_lists = n_splits * n_subitems,
    .capacity = capacity,
    .n_splits = n_splits,
    .n_subitems = n_subitems,
    .n_chunks = pool_chunks(n_splits, n_subitems, capacity),
    .free = POSTINGS_NONE,
  };

  *out = p;
  if (p.n_chunks > UINT32_MAX / POSTINGS_CHUNK_SLOTS)
    FAIL(ERR_CONFIG, "catalogue.max_items is %zu, too many for inverted lists over %zu splits; at most %zu fit",
         capacity, n_splits, (size_t)UINT32_MAX / n_splits - POSTINGS_CHUNK_SLOTS * (n_subitems + 1));
  TRY(mem_reserve(p.n_chunks, sizeof *p.chunks, &out->chunks));
  TRY(mem_array(p.n_lists, sizeof *p.heads, &out->heads));
  TRY(mem_array(p.n_lists, sizeof *p.lengths, &out->lengths));
  TRY(mem_reserve(capacity * n_splits, sizeof *p.places, &out->places));
  memset(out->heads, 0xff, p.n_lists * sizeof *p.heads);
  return ERR_OK;
}

void postings_fini(struct postings *p)
{
  mem_release(&p->chunks, p->n_chunks, sizeof *p->chunks);
  mem_free(&p->heads);
  mem_free(&p->lengths);
  mem_release(&p->places, p->capacity * p->n_splits, sizeof *p->places);
}

size_t postings_bytes_per_slot(size_t n_splits)
{
  return n_splits * (sizeof(struct postings_chunk) / POSTINGS_CHUNK_SLOTS + 1 + sizeof(uint32_t));
}

static uint32_t *place_of(struct postings *p, uint32_t slot, size_t split)
{
  return &p->places[(size_t)slot * p->n_splits + split];
}

static uint32_t *entry_at(struct postings *p, uint32_t place)
{
  return &p->chunks[place / POSTINGS_CHUNK_SLOTS].slots[place % POSTINGS_CHUNK_SLOTS];
}

static uint32_t take_chunk(struct postings *p)
{
  uint32_t chunk = p->free;

  if (chunk != POSTINGS_NONE) {
    p->free = p->chunks[chunk].next;
    return chunk;
  }
  assert(p->n_used < p->n_chunks); /* the pool is sized for the worst case */
  return p->n_used++;
}

static void push(struct postings *p, size_t split, size_t list, uint32_t slot)
{
  uint32_t head = p->heads[list];

  if (head == POSTINGS_NONE || p->chunks[head].n == POSTINGS_CHUNK_SLOTS) {
    uint32_t chunk = take_chunk(p);
    p->chunks[chunk].n = 0;
    p->chunks[chunk].next = head;
    p->heads[list] = head = chunk;
  }
  *place_of(p, slot, split) = head * POSTINGS_CHUNK_SLOTS + p->chunks[head].n;
  p->chunks[head].slots[p->chunks[head].n++] = slot;
  p->lengths[list]++;
}

/* Remove and return the newest entry of a list that is not empty. */
static uint32_t pop(struct postings *p, size_t list)
{
  uint32_t head = p->heads[list];
  struct postings_chunk *chunk = &p->chunks[head];
  uint32_t slot = chunk->slots[--chunk->n];

  p->lengths[list]--;
  if (chunk->n == 0) {
    p->heads[list] = chunk->next;
    chunk->next = p->free;
    p->free = head;
  }
  return slot;
}

void postings_insert(struct postings *p, uint32_t slot, const uint8_t *codes)
{
  for (size_t split = 0; split < p->n_splits; split++)
    push(p, split, postings_list(p, split, codes[split]), slot);
}

void postings_remove(struct postings *p, uint32_t slot, const uint8_t *codes)
{
  for (size_t split = 0; split < p->n_splits; split++) {
    uint32_t hole = *place_of(p, slot, split);
    uint32_t newest = pop(p, postings_list(p, split, codes[split]));
    if (newest != slot) {
      *entry_at(p, hole) = newest;
      *place_of(p, newest, split) = hole;
    }
  }
}

void postings_rename(struct postings *p, uint32_t from, uint32_t to)
{
  for (size_t split = 0; split < p->n_splits; split++) {
    uint32_t place = *place_of(p, from, split);
    *entry_at(p, place) = to;
    *place_of(p, to, split) = place;
  }
}
