/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the fields of parts and queries have the sizes that a model needs, with error messages for users. */
#ifndef ENGINE_MODEL_SHAPE_CHECK_H
#define ENGINE_MODEL_SHAPE_CHECK_H

#include "base/query.h"
#include "base/err.h"

/* Larger numbers come from a broken exporter, and could overflow a model's networks to infinity. */
#define SHAPE_CHECK_NUMBER_MAX 1e9f

/* Verify that a field has n numbers of reasonable size. Returns `code` otherwise; the message begins with `where`. */
err_t shape_check_floats(err_code_t code, const char *where, const char *field, struct floats given, size_t n);

/* Verify that a field is absent, because the similarity does not use it. Returns `code` otherwise. */
err_t shape_check_absent(err_code_t code, const char *where, const char *field, size_t n_given);

/* The text "part NAME" for messages, with the name of the part's space. Valid until the thread's next call. */
const char *shape_check_part_name(const struct part *part);

#endif
