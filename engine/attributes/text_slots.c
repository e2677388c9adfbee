/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of slots in chunks of lists and words. */
#include "engine/attributes/text_slots.h"

#include <assert.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/size.h"

enum {
  CHUNK_BITS = 16,
  LIST_MAX = 1024,  /* slots in a list: one in 64 */
  WORDS_MIN = 512,  /* words with fewer slots become a list: far enough below LIST_MAX that this is rare */
  LIST_CAPACITY = 8 /* of a new list */
};

struct slot_chunk {
  uint32_t high;     /* slot / 65536 */
  uint32_t n;        /* slots, at least 1 */
  uint32_t capacity; /* of the list; 0: words */
  union {
    uint16_t *list; /* slots % 65536, rising */
    uint64_t *words;
  };
};

static void close_chunk(struct slot_chunk *c)
{
  if (c->capacity)
    mem_free(&c->list);
  else
    mem_free(&c->words);
}

void text_slots_fini(struct text_slots *s)
{
  if (s->n_chunks) {
    for (uint32_t i = 0; i < s->n_chunks; i++)
      close_chunk(&s->chunks[i]);
    mem_free(&s->chunks);
  }
  *s = (struct text_slots){ 0 };
}

/* Lists -------------------- */

/* Return the index of the first element that is not below `low`. */
static uint32_t lower_bound(const uint16_t *list, uint32_t n, uint32_t low)
{
  uint32_t from = 0;

  while (n > 0) {
    uint32_t half = n / 2;
    if (list[from + half] < low) {
      from += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return from;
}

/* Give a list another capacity. */
static err_t resize_list(struct slot_chunk *c, uint32_t capacity)
{
  uint16_t *list;

  TRY(mem_bytes(capacity * sizeof *list, &list));
  if (c->n)
    memcpy(list, c->list, c->n * sizeof *list);
  mem_free(&c->list);
  c->list = list;
  c->capacity = capacity;
  return ERR_OK;
}

static err_t list_to_words(struct slot_chunk *c)
{
  uint64_t *words;

  TRY(mem_array(TEXT_SLOTS_CHUNK_WORDS, sizeof *words, &words));
  for (uint32_t i = 0; i < c->n; i++)
    bits_set(words, c->list[i]);
  mem_free(&c->list);
  c->words = words;
  c->capacity = 0;
  return ERR_OK;
}

/* Make a list of words. Without memory the words stay. */
static void words_to_list(struct slot_chunk *c)
{
  uint16_t *list;
  uint32_t n = 0;

  if (mem_bytes(LIST_MAX * sizeof *list, &list) != ERR_OK)
    return;
  for (uint32_t w = 0; w < TEXT_SLOTS_CHUNK_WORDS; w++) {
    for (uint64_t rest = c->words[w]; rest; rest &= rest - 1)
      list[n++] = (uint16_t)(w * 64 + (uint32_t)__builtin_ctzll(rest));
  }
  mem_free(&c->words);
  c->list = list;
  c->capacity = LIST_MAX;
}

static err_t list_add(struct slot_chunk *c, uint32_t low, bool *is_new)
{
  uint32_t at = c->n && c->list[c->n - 1] < low ? c->n : lower_bound(c->list, c->n, low);

  *is_new = at == c->n || c->list[at] != low;
  if (!*is_new)
    return ERR_OK;
  if (c->n == c->capacity)
    TRY(resize_list(c, 2 * c->capacity));
  memmove(c->list + at + 1, c->list + at, (c->n - at) * sizeof *c->list);
  c->list[at] = (uint16_t)low;
  c->n++;
  return ERR_OK;
}

static bool list_remove(struct slot_chunk *c, uint32_t low)
{
  uint32_t at = lower_bound(c->list, c->n, low);

  if (at == c->n || c->list[at] != low)
    return false;
  c->n--;
  memmove(c->list + at, c->list + at + 1, (c->n - at) * sizeof *c->list);
  if (c->capacity > LIST_CAPACITY && c->n < c->capacity / 4)
    (void)!resize_list(c, c->capacity / 2); /* without memory the list keeps its capacity */
  return true;
}

/* Chunks -------------------- */

static err_t chunk_add(struct slot_chunk *c, uint32_t low, bool *is_new)
{
  if (c->capacity && c->n == LIST_MAX)
    TRY(list_to_words(c));
  if (c->capacity)
    return list_add(c, low, is_new);
  *is_new = !bits_get(c->words, low);
  bits_set(c->words, low);
  c->n += *is_new;
  return ERR_OK;
}

/* Remove a slot from a chunk. Was it there? */
static bool chunk_remove(struct slot_chunk *c, uint32_t low)
{
  if (c->capacity)
    return list_remove(c, low);
  if (!bits_get(c->words, low))
    return false;
  bits_clear(c->words, low);
  c->n--;
  if (c->n < WORDS_MIN)
    words_to_list(c);
  return true;
}

/* Return the index of the first chunk that is not below `high`. */
static uint32_t find_chunk(const struct text_slots *s, uint32_t high)
{
  uint32_t from = 0, n = s->n_chunks;

  while (n > 0) {
    uint32_t half = n / 2;
    if (s->chunks[from + half].high < high) {
      from += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return from;
}

/* Insert an empty list at an index. The array has room for the next power of two at least. */
static err_t insert_chunk(struct text_slots *s, uint32_t at, uint32_t high)
{
  struct slot_chunk new = { .high = high, .capacity = LIST_CAPACITY };

  TRY(mem_bytes(LIST_CAPACITY * sizeof *new.list, &new.list));
  if ((s->n_chunks & (s->n_chunks - 1)) == 0) { /* there may be no more room */
    struct slot_chunk *chunks;
    err_code_t err = mem_bytes((s->n_chunks ? 2 * s->n_chunks : 1) * sizeof *chunks, &chunks);
    if (err != ERR_OK) {
      mem_free(&new.list);
      return err;
    }
    if (s->n_chunks) {
      memcpy(chunks, s->chunks, s->n_chunks * sizeof *chunks);
      mem_free(&s->chunks);
    }
    s->chunks = chunks;
  }
  memmove(s->chunks + at + 1, s->chunks + at, (s->n_chunks - at) * sizeof *s->chunks);
  s->chunks[at] = new;
  s->n_chunks++;
  return ERR_OK;
}

/* Remove an empty chunk. The array keeps its size. */
static void remove_chunk(struct text_slots *s, uint32_t at)
{
  close_chunk(&s->chunks[at]);
  s->n_chunks--;
  memmove(s->chunks + at, s->chunks + at + 1, (s->n_chunks - at) * sizeof *s->chunks);
}

/* Sets -------------------- */

static err_t add_to_chunks(struct text_slots *s, uint32_t slot)
{
  uint32_t high = slot >> CHUNK_BITS, at = find_chunk(s, high);
  bool is_new;

  if (at == s->n_chunks || s->chunks[at].high != high)
    TRY(insert_chunk(s, at, high));
  TRY(chunk_add(&s->chunks[at], slot & 0xffff, &is_new));
  s->n += is_new;
  return ERR_OK;
}

/* Move the few slots into chunks. */
static err_t few_to_chunks(struct text_slots *s)
{
  struct text_slots chunks = { 0 };

  for (uint32_t i = 0; i < s->n; i++) {
    err_code_t err = add_to_chunks(&chunks, s->few[i]);
    if (err != ERR_OK) {
      text_slots_fini(&chunks);
      return err;
    }
  }
  *s = chunks;
  return ERR_OK;
}

err_t text_slots_add(struct text_slots *s, uint32_t slot)
{
  if (!s->n_chunks) {
    for (uint32_t i = 0; i < s->n; i++) {
      if (s->few[i] == slot)
        return ERR_OK;
    }
    if (s->n < TEXT_SLOTS_FEW) {
      s->few[s->n++] = slot;
      return ERR_OK;
    }
    TRY(few_to_chunks(s));
  }
  return add_to_chunks(s, slot);
}

/* Move the last slot of a set from its chunk into few[]. */
static void chunks_to_few(struct text_slots *s)
{
  uint32_t slot = s->chunks[0].high << CHUNK_BITS | s->chunks[0].list[0];

  text_slots_fini(s);
  s->few[s->n++] = slot;
}

static void remove_from_chunks(struct text_slots *s, uint32_t slot)
{
  uint32_t high = slot >> CHUNK_BITS, at = find_chunk(s, high);

  if (at == s->n_chunks || s->chunks[at].high != high || !chunk_remove(&s->chunks[at], slot & 0xffff))
    return;
  s->n--;
  if (s->chunks[at].n == 0)
    remove_chunk(s, at);
  if (s->n == 0)
    text_slots_fini(s);
  else if (s->n == 1 && s->chunks[0].capacity)
    chunks_to_few(s);
}

void text_slots_remove(struct text_slots *s, uint32_t slot)
{
  if (s->n_chunks) {
    remove_from_chunks(s, slot);
    return;
  }
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->few[i] == slot) {
      s->few[i] = s->few[--s->n];
      return;
    }
  }
}

const uint64_t *text_slots_words(const struct text_slots *s, size_t first, size_t n)
{
  static const uint64_t none[TEXT_SLOTS_CHUNK_WORDS];
  uint32_t high = (uint32_t)(first / TEXT_SLOTS_CHUNK_WORDS);

  assert(n > 0 && (first + n - 1) / TEXT_SLOTS_CHUNK_WORDS == high);
  (void)n;
  if (!s->n_chunks)
    return s->n ? NULL : none;
  uint32_t at = find_chunk(s, high);
  if (at == s->n_chunks || s->chunks[at].high != high)
    return none;
  return s->chunks[at].capacity ? NULL : s->chunks[at].words + first % TEXT_SLOTS_CHUNK_WORDS;
}

static void set_bit(uint32_t slot, size_t first, size_t n, uint64_t *words)
{
  if (slot / 64 >= first && slot / 64 < first + n)
    bits_set(words, slot - first * 64);
}

/* Set the bits of a chunk's slots in words from..to-1 of the chunk. */
static void or_chunk(const struct slot_chunk *c, size_t from, size_t to, uint64_t *words)
{
  if (!c->capacity) {
    for (size_t w = from; w < to; w++)
      words[w - from] |= c->words[w];
    return;
  }
  for (uint32_t i = lower_bound(c->list, c->n, (uint32_t)from * 64); i < c->n && c->list[i] < to * 64; i++)
    bits_set(words, c->list[i] - from * 64);
}

void text_slots_or(const struct text_slots *s, size_t first, size_t n, uint64_t *words)
{
  if (!s->n_chunks) {
    for (uint32_t i = 0; i < s->n; i++)
      set_bit(s->few[i], first, n, words);
    return;
  }
  for (uint32_t i = find_chunk(s, (uint32_t)(first / TEXT_SLOTS_CHUNK_WORDS)); i < s->n_chunks; i++) {
    size_t chunk = (size_t)s->chunks[i].high * TEXT_SLOTS_CHUNK_WORDS; /* its first word */
    if (chunk >= first + n)
      return;
    size_t from = size_max(first, chunk), to = size_min(first + n, chunk + TEXT_SLOTS_CHUNK_WORDS);
    or_chunk(&s->chunks[i], from - chunk, to - chunk, words + (from - first));
  }
}
