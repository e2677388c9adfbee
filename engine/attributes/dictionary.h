/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of an attribute: text -> code and code -> text, with the slots that have each text. A text that no slot has
 * any more is freed, and its code is used again.
 *
 * The table uses open addressing with linear probing, as keys.h does. The hash has a random secret: texts come from
 * outside, and nobody can choose texts that collide.
 *
 * Thread: one that writes, or any that read.
 */
#ifndef ENGINE_ATTRIBUTES_DICTIONARY_H
#define ENGINE_ATTRIBUTES_DICTIONARY_H

#include "base/span.h"
#include "engine/attributes/text_slots.h"

#define DICTIONARY_NONE UINT32_MAX

enum { DICTIONARY_SECRET_BYTES = 192 };

struct dictionary_entry {
  uint8_t *text; /* its length as u16, then the text; owned. NULL: the code is free */
  uint32_t hash;
  uint32_t next_free; /* of a free code: the next one, or DICTIONARY_NONE */
  struct text_slots slots;
};

struct dictionary {
  struct dictionary_entry *entries; /* [n_codes] by code */
  size_t n_codes;                   /* codes in use or free */
  size_t capacity;
  uint32_t first_free; /* DICTIONARY_NONE: none */
  uint32_t n_texts;
  uint32_t *table; /* [n_table], a power of two: code + 1, or 0 */
  size_t n_table;
  uint8_t secret[DICTIONARY_SECRET_BYTES]; /* secret of the hash */
};

err_t dictionary_init(struct dictionary *out);
void dictionary_fini(struct dictionary *d);

/* Return the code of a text, or DICTIONARY_NONE. */
uint32_t dictionary_find(const struct dictionary *d, struct span text);

/* Get the code of a text, which may be new. A new text has no slots: add one, or dictionary_drop() the code. Returns
 * ERR_MEMORY. */
err_t dictionary_code(struct dictionary *d, struct span text, uint32_t *code);

/* Free a text if no slot has it. */
void dictionary_drop(struct dictionary *d, uint32_t code);

/* Give the empty dictionary the texts and codes of another one, without their slots. Returns ERR_MEMORY. */
err_t dictionary_copy(struct dictionary *d, const struct dictionary *from);

/* The text of a code. Valid until the text is freed. */
static inline struct span dictionary_text(const struct dictionary *d, uint32_t code)
{
  uint16_t n;

  memcpy(&n, d->entries[code].text, sizeof n);
  return span_of(d->entries[code].text + sizeof n, n);
}

#endif
