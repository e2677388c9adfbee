/* SPDX-License-Identifier: Apache-2.0 */
/* How unlike two names are, so that an error can say which known name was meant. */
#ifndef BASE_EDIT_DISTANCE_H
#define BASE_EDIT_DISTANCE_H

#include <stddef.h>

/* Texts are compared up to here. */
enum { EDIT_TEXT_MAX = 128 };

/* Edits that make one text the other (Levenshtein): a byte inserted, deleted or replaced. Thread: any. */
size_t edit_distance(const char *a, const char *b);

#endif
