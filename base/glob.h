/* SPDX-License-Identifier: Apache-2.0 */
/* Glob patterns: `*` matches any number of bytes, `?` matches one byte, and every other byte matches itself. */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include "base/span.h"

/* Does the whole text match the pattern? Thread: any. */
bool glob_matches(const char *pattern, struct span text);

#endif
