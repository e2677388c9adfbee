/* SPDX-License-Identifier: Apache-2.0 */
/* The edit distance of two names. With it an error message can suggest the known name that was probably meant. */
#ifndef BASE_EDIT_DISTANCE_H
#define BASE_EDIT_DISTANCE_H

#include <stddef.h>

/* Only the first bytes of each text are compared. */
enum { EDIT_TEXT_MAX = 128 };

/* Return the Levenshtein distance: how many bytes to insert, delete or replace to turn one text into the other.
 * Thread: any. */
size_t edit_distance(const char *a, const char *b);

/* Return a distance in which letters count more than their case: "dq" is nearer to "Dq" than to "dP". It is at least
 * EDIT_TEXT_MAX times the distance without regard to case. Thread: any. */
size_t edit_distance_by_letter(const char *a, const char *b);

#endif
