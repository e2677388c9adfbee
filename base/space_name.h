/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a space, with or without a generation: `books`, `books@2`. The name that a configuration gives has no @.
 *
 * The canonical name of the first generation is the plain one, so it is stored as it was before there were others.
 */
#ifndef BASE_SPACE_NAME_H
#define BASE_SPACE_NAME_H

#include "base/item.h"

enum { SPACE_GENERATION_MAX = 999999999 };

struct space_name {
  struct span space;   /* without the generation; borrowed from the text */
  uint32_t generation; /* 1..SPACE_GENERATION_MAX; 0: the text names none */
};

/* Take a name apart. Returns false if what follows an @ is not the number of a generation, or nothing precedes it. */
bool space_name_parse(struct span text, struct space_name *out);

/* Write the canonical name of a generation, with a zero byte. 0 counts as the first generation. Returns false if it has
 * more than SPACE_NAME_MAX bytes. */
bool space_name_print(const struct space_name *name, char out[SPACE_NAME_MAX + 1]);

#endif
