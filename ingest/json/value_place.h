/* SPDX-License-Identifier: Apache-2.0 */
/* A place in a binary value that is read as JSON: a linked list on the reader's stack, printed only for an error.
 *
 * Thread: any. Blocks: no. Allocates: no.
 */
#ifndef INGEST_VALUE_PLACE_H
#define INGEST_VALUE_PLACE_H

#include <stddef.h>

enum { VALUE_PLACE_BYTES = 256 };

/* NULL stands for the whole value. */
struct value_place {
  const struct value_place *up;
  const char *name; /* of a field, or a map's key; NULL: an element of a list */
  size_t index;
  int depth;
};

/* Return the place inside another one: a member, or an element if `name` is NULL. */
struct value_place value_place_in(const struct value_place *up, const char *name, size_t index);

/* Print the path of a place, such as `tags[3].name`. Returns `text`; "the value" for the whole. */
const char *value_place_text(const struct value_place *at, char text[VALUE_PLACE_BYTES]);

#endif
