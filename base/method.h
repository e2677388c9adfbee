/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of methods: "exact", "average(4000)", "combined(100,1000)". */
#ifndef BASE_METHOD_H
#define BASE_METHOD_H

#include "base/err.h"
#include "base/query.h"

enum { METHOD_TEXT_MAX = 64 };

/* Parse a method. Arguments are integers from 1 to 2^32 - 1. Empty text means "exact". Returns ERR_METHOD with the
 * expected form. */
err_t method_parse(struct span text, struct method *out);

/* Print a method in the form that method_parse() reads. text [METHOD_TEXT_MAX]. */
void method_print(const struct method *method, char *text);

#endif
