/* SPDX-License-Identifier: Apache-2.0 */
/* The set of texts that one slot has, as codes of a dictionary. A few codes lie in the struct. More are allocated. */
#ifndef ENGINE_ATTRIBUTES_CODE_SET_H
#define ENGINE_ATTRIBUTES_CODE_SET_H

#include "base/mem.h"

enum { CODE_SET_FEW = 3 };

/* All zeros: empty. */
struct code_set {
  uint32_t n;
  uint32_t few[CODE_SET_FEW]; /* if n is larger: the last two hold the address of the codes */
};

/* The codes, rising. Valid until the set changes. */
static inline const uint32_t *code_set_codes(const struct code_set *s)
{
  return s->n <= CODE_SET_FEW ? s->few : mem_pointer_get(&s->few[CODE_SET_FEW - 2]);
}

static inline void code_set_fini(struct code_set *s)
{
  if (s->n > CODE_SET_FEW)
    mem_free(&s->few[CODE_SET_FEW - 2]);
  *s = (struct code_set){ 0 };
}

/* Set an empty set to codes, which rise. Returns ERR_MEMORY; then it stays empty. */
static inline err_t code_set_init(const uint32_t *codes, uint32_t n, struct code_set *out)
{
  struct code_set set = { .n = n };
  uint32_t *many;

  if (n <= CODE_SET_FEW) {
    if (n)
      memcpy(set.few, codes, n * sizeof *codes);
  } else {
    TRY(mem_bytes(n * sizeof *many, &many));
    memcpy(many, codes, n * sizeof *many);
    mem_pointer_set(&set.few[CODE_SET_FEW - 2], many);
  }
  *out = set;
  return ERR_OK;
}

#endif
