/* SPDX-License-Identifier: Apache-2.0 */
/* Checking, counting and repairing UTF-8. Thread: any. Blocks: no. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/err.h"
#include "base/region.h"

/* Is the text well-formed UTF-8 without a zero byte? Overlong forms, surrogates and characters above U+10FFFF are not
 * well-formed. Such text fits both a protobuf string and a JSON string. */
bool utf8_is_valid(struct span text);

/* Return the length in bytes of the longest beginning of a text that utf8_is_valid() accepts. */
size_t utf8_prefix(struct span text);

/* Return the number of characters of a text that utf8_is_valid() accepts. */
size_t utf8_count(struct span text);

/* Copy text, with '?' for each byte that utf8_is_valid() would not accept. `*out` is zero-terminated and lives in the
 * region. */
err_t utf8_mend(struct region *r, struct span text, char **out);

#endif
