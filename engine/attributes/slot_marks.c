/* SPDX-License-Identifier: Apache-2.0 */
/* Marking and taking slots. */
#include "engine/attributes/slot_marks.h"

#include <string.h>

#include "base/mem.h"

err_t slot_marks_init(size_t n_words, struct slot_marks *out)
{
  *out = (struct slot_marks){ .n_words = n_words };
  TRY(mem_reserve(n_words, sizeof *out->slots, &out->slots));
  return mem_reserve(bits_words(n_words), sizeof *out->words, &out->words);
}

void slot_marks_fini(struct slot_marks *m)
{
  mem_release(&m->slots, m->n_words, sizeof *m->slots);
  mem_release(&m->words, bits_words(m->n_words), sizeof *m->words);
}

void slot_marks_set(struct slot_marks *m, uint32_t slot)
{
  size_t word = slot / 64;

  m->n_marked += m->slots[word] == 0;
  bits_set(m->slots, slot);
  bits_set(m->words, word);
}

void slot_marks_set_all(struct slot_marks *m, size_t n_slots)
{
  for (size_t w = 0; w < bits_words(n_slots); w++) {
    size_t n = n_slots - w * 64;
    m->n_marked += m->slots[w] == 0;
    m->slots[w] |= n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
    bits_set(m->words, w);
  }
}

/* Return the first marked word at or after `from`. There is one below n_words, or n_words is returned. */
static size_t find(const struct slot_marks *m, size_t from)
{
  size_t end = bits_words(m->n_words), at = from / 64;
  uint64_t bits = at < end ? m->words[at] & UINT64_MAX << from % 64 : 0;

  while (bits == 0 && ++at < end)
    bits = m->words[at];
  return bits ? at * 64 + (size_t)__builtin_ctzll(bits) : m->n_words;
}

bool slot_marks_take(struct slot_marks *m, size_t from, size_t *word, uint64_t *slots)
{
  size_t at = m->n_marked > 0 ? find(m, from) : m->n_words;

  if (at == m->n_words)
    return false;
  *word = at;
  *slots = m->slots[at];
  m->slots[at] = 0;
  bits_clear(m->words, at);
  m->n_marked--;
  return true;
}
