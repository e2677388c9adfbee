/* SPDX-License-Identifier: Apache-2.0 */
/* A space: a name, a model, and its similarity. It does not change while the engine is open. */
#ifndef ENGINE_SPACE_H
#define ENGINE_SPACE_H

#include "engine/similarity.h"

struct space {
  char *name;
  const struct similarity *similarity;
  struct model *model;
};

struct engine_space;

/* Load the model. Returns ERR_MODEL or ERR_MEMORY; the space may be given to space_fini() then too. */
err_t space_init(const struct engine_space *config, struct space *out);
void space_fini(struct space *s);

/* Refuse everything that space_init() would refuse, but within seconds. If loading the model takes longer, the space
 * has no model afterwards. Errors as above. */
err_t space_check(const struct engine_space *config, struct space *out);

#endif
