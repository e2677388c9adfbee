/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that parts and queries have the fields and sizes that a model needs, with sentences that say so. */
#ifndef ENGINE_MODEL_SHAPE_CHECK_H
#define ENGINE_MODEL_SHAPE_CHECK_H

#include "base/query.h"
#include "base/err.h"

/* Returns `code` when a field that was given does not have n numbers of sane size; `where` begins the sentence. */
err_t shape_check_floats(err_code_t code, const char *where, const char *field, struct floats given, size_t n);

/* Returns `code` when a field was given that the similarity has no use for. */
err_t shape_check_absent(err_code_t code, const char *where, const char *field, size_t n_given);

/* "part of space NAME" for messages: valid until the thread's next call. */
const char *shape_check_part_name(const struct part *part);

#endif
