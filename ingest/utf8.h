/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8. Thread: any. Blocks: no. */
#ifndef INGEST_UTF8_H
#define INGEST_UTF8_H

#include "base/err.h"
#include "base/region.h"

/* Well-formed UTF-8 (no overlong forms, no surrogates, nothing over U+10FFFF) without a zero byte: what a protobuf
 * string and a JSON string can both carry. */
bool utf8_check(struct span text);

/* Copy text, '?' in place of each byte that keeps it from being utf8_check()ed. Zero-terminated. */
err_t utf8_mend(struct region *r, struct span text, char **out);

#endif
