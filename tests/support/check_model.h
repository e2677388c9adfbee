/* SPDX-License-Identifier: Apache-2.0 */
/* Check one model file as `sluiced --check-config` does, through engine_check(). */
#ifndef TESTS_SUPPORT_CHECK_MODEL_H
#define TESTS_SUPPORT_CHECK_MODEL_H

#include "engine/engine.h"

/* End the check with the first error, so that its message is still the newest. */
static inline err_code_t check_model_problem(void *context, err_code_t err, enum engine_fault fault, size_t space)
{
  (void)context;
  (void)fault;
  (void)space;
  return err;
}

/* dim  as in struct engine_space */
static inline err_code_t check_model(const char *path, size_t dim)
{
  const struct engine_space space = { .name = "space", .model_path = path, .dim = dim };
  const struct engine_config config = { .spaces = &space, .n_spaces = 1, .max_items = 1, .max_k = 1, .max_batch = 1 };

  return engine_check(&config, check_model_problem, NULL);
}

#endif
