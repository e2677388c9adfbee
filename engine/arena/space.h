/* SPDX-License-Identifier: Apache-2.0 */
/* A space: a name, a generation, a model, and its similarity. Each generation of a name is a space of its own. It does
 * not change while an arena has it, except for its count. */
#ifndef ENGINE_SPACE_H
#define ENGINE_SPACE_H

#include <stdatomic.h>

#include "base/item.h"
#include "base/sha256.h"
#include "engine/similarity/similarity.h"

struct space {
  char name[SPACE_NAME_MAX + 1];      /* without the generation */
  char part_name[SPACE_NAME_MAX + 1]; /* of the parts that it uses: with the generation, unless that is the first one */
  uint32_t generation;                /* from 1 on */
  size_t number;                      /* no other space of the engine has it, nor had */
  char digest[SHA256_HEX_BYTES];      /* of the model file; "" after space_check() */
  const struct similarity *similarity;
  struct model *model;
  _Atomic uint64_t n_refused; /* as in struct engine_space_info */
};

struct engine_space;

/* Does a name with a generation mean this space? Generation 0: the current one. */
static inline bool space_is(const struct space *space, bool is_current, struct span name, uint32_t generation)
{
  return span_equal(span_of_str(space->name), name) && (generation ? space->generation == generation : is_current);
}

/* Load the model. space_table_put() gives the number. Returns ERR_MODEL, ERR_MEMORY or ERR_SYSTEM; the space may be
 * given to space_fini() then too. */
err_t space_init(const struct engine_space *config, struct space *out);
void space_fini(struct space *s);

/* Refuse everything that space_init() would refuse, but within seconds. If loading the model takes longer, the space
 * has no model afterwards. Errors as above. */
err_t space_check(const struct engine_space *config, struct space *out);

#endif
