/* SPDX-License-Identifier: Apache-2.0 */
/* Glob patterns: `*` stands for any bytes, also none, `?` for one byte, everything else for itself. */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include "base/span.h"

/* Whether all of the text matches. Thread: any. */
bool glob_check(const char *pattern, struct span text);

#endif
