/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table of texts, and the texts, one allocation each. */
#include "engine/attributes/dictionary.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

static_assert(DICTIONARY_SECRET_BYTES >= XXH3_SECRET_SIZE_MIN, "XXH3 needs a secret of this size");

err_t dictionary_init(struct dictionary *out)
{
  *out = (struct dictionary){ .first_free = DICTIONARY_NONE };
  if (getrandom(out->secret, sizeof out->secret, 0) != sizeof out->secret)
    FAIL(ERR_SYSTEM, "no random bytes: %s", strerror(errno));
  return ERR_OK;
}

/* Free the memory of a dictionary whose texts have been freed. */
static void free_memory(struct dictionary *d)
{
  mem_free(&d->entries);
  mem_free(&d->table);
  d->n_codes = d->capacity = d->n_table = d->n_texts = 0;
  d->first_free = DICTIONARY_NONE;
}

void dictionary_fini(struct dictionary *d)
{
  for (size_t code = 0; code < d->n_codes; code++) {
    if (d->entries[code].text)
      text_slots_fini(&d->entries[code].slots);
    mem_free(&d->entries[code].text);
  }
  free_memory(d);
}

static uint32_t hash_of(const struct dictionary *d, struct span text)
{
  return (uint32_t)XXH3_64bits_withSecret(text.p, text.n, d->secret, sizeof d->secret);
}

/* Return the index of a text's place in the table, or of the free place where the text would go. */
static size_t locate(const struct dictionary *d, struct span text, uint32_t hash)
{
  size_t mask = d->n_table - 1, i = hash & mask;

  for (; d->table[i]; i = (i + 1) & mask) {
    uint32_t code = d->table[i] - 1;
    if (d->entries[code].hash == hash && span_equal(dictionary_text(d, code), text))
      return i;
  }
  return i;
}

uint32_t dictionary_find(const struct dictionary *d, struct span text)
{
  return d->n_table ? d->table[locate(d, text, hash_of(d, text))] - 1 : DICTIONARY_NONE; /* 0 - 1 is DICTIONARY_NONE */
}

/* Put codes into a larger table. */
static err_t grow_table(struct dictionary *d)
{
  size_t n = d->n_table ? 2 * d->n_table : 64;
  uint32_t *table;

  TRY(mem_array(n, sizeof *table, &table));
  for (size_t old = 0; old < d->n_table; old++) {
    if (!d->table[old])
      continue;
    size_t i = d->entries[d->table[old] - 1].hash & (n - 1);
    while (table[i])
      i = (i + 1) & (n - 1);
    table[i] = d->table[old];
  }
  mem_free(&d->table);
  d->table = table;
  d->n_table = n;
  return ERR_OK;
}

/* Copy a text, with its length before it. */
static err_t copy_text(struct span text, uint8_t **out)
{
  uint16_t n = (uint16_t)text.n;

  TRY(mem_bytes(sizeof n + text.n, out));
  memcpy(*out, &n, sizeof n);
  if (text.n)
    memcpy(*out + sizeof n, text.p, text.n);
  return ERR_OK;
}

/* Take a free code, or a new one. */
static err_t take_code(struct dictionary *d, uint32_t *code)
{
  if (d->first_free != DICTIONARY_NONE) {
    *code = d->first_free;
    d->first_free = d->entries[*code].next_free;
    return ERR_OK;
  }
  TRY(mem_grow(d->n_codes + 1, sizeof *d->entries, &d->capacity, &d->entries));
  *code = (uint32_t)d->n_codes++;
  return ERR_OK;
}

err_t dictionary_code(struct dictionary *d, struct span text, uint32_t *code)
{
  uint32_t hash = hash_of(d, text);
  uint8_t *copy;

  if (2 * ((size_t)d->n_texts + 1) > d->n_table)
    TRY(grow_table(d));
  size_t i = locate(d, text, hash);
  if (d->table[i]) {
    *code = d->table[i] - 1;
    return ERR_OK;
  }
  TRY(copy_text(text, &copy));
  err_code_t err = take_code(d, code);
  if (err != ERR_OK) {
    mem_free(&copy);
    return err;
  }
  d->entries[*code] = (struct dictionary_entry){ .text = copy, .hash = hash };
  d->table[i] = *code + 1;
  d->n_texts++;
  return ERR_OK;
}

/* Free a place and close the gap. A code further on may stay only if no free place lies between its home and it. */
static void free_place(struct dictionary *d, size_t hole)
{
  size_t mask = d->n_table - 1;

  for (size_t i = (hole + 1) & mask; d->table[i]; i = (i + 1) & mask) {
    size_t home = d->entries[d->table[i] - 1].hash & mask;
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      d->table[hole] = d->table[i];
      hole = i;
    }
  }
  d->table[hole] = 0;
}

void dictionary_drop(struct dictionary *d, uint32_t code)
{
  struct dictionary_entry *entry = &d->entries[code];

  if (entry->slots.n > 0)
    return;
  free_place(d, locate(d, dictionary_text(d, code), entry->hash));
  mem_free(&entry->text);
  text_slots_fini(&entry->slots);
  entry->next_free = d->first_free;
  d->first_free = code;
  if (--d->n_texts == 0)
    free_memory(d);
}

err_t dictionary_copy(struct dictionary *d, const struct dictionary *from)
{
  memcpy(d->secret, from->secret, sizeof d->secret);
  TRY(mem_array(from->n_table, sizeof *d->table, &d->table));
  if (from->n_table)
    memcpy(d->table, from->table, from->n_table * sizeof *d->table);
  d->n_table = from->n_table;
  TRY(mem_grow(from->n_codes, sizeof *d->entries, &d->capacity, &d->entries));
  for (; d->n_codes < from->n_codes; d->n_codes++) {
    const struct dictionary_entry *entry = &from->entries[d->n_codes];
    d->entries[d->n_codes] = (struct dictionary_entry){ .hash = entry->hash, .next_free = entry->next_free };
    if (entry->text)
      TRY(copy_text(dictionary_text(from, (uint32_t)d->n_codes), &d->entries[d->n_codes].text));
  }
  d->first_free = from->first_free;
  d->n_texts = from->n_texts;
  return ERR_OK;
}
