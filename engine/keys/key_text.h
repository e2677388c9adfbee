/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a key, kept once for both arenas of the pair. The change that brings a key makes it; each arena that has
 * the key is an owner too, and the last owner frees it.
 *
 * Thread: owners come and go in one thread at a time; while arenas are loaded, each text is handled by one thread. The
 * bytes never change, so any thread may read them while there is an owner.
 */
#ifndef ENGINE_KEY_TEXT_H
#define ENGINE_KEY_TEXT_H

#include "base/mem.h"
#include "base/span.h"

struct key_text {
  uint16_t n_owners;
  uint16_t n;
  uint8_t bytes[];
};

/* Copy a key. The caller is the first owner. Returns ERR_MEMORY. */
static inline err_t key_text_make(struct span key, struct key_text **out)
{
  struct key_text *text;

  TRY(mem_bytes(sizeof *text + key.n, &text));
  *text = (struct key_text){ .n_owners = 1, .n = (uint16_t)key.n };
  memcpy(text->bytes, key.p, key.n);
  *out = text;
  return ERR_OK;
}

/* Add an owner. */
static inline struct key_text *key_text_keep(struct key_text *text)
{
  text->n_owners++;
  return text;
}

/* End an ownership, and set the owner's pointer to NULL. It may be NULL before. */
static inline void key_text_drop(struct key_text **text)
{
  if (*text && --(*text)->n_owners == 0)
    mem_free(text);
  *text = NULL;
}

#endif
