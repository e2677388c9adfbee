/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text before it is parsed: what parsing it will take, and the numbers that jansson cannot hold.
 *
 * Thread: any. Blocks: no.
 */
#ifndef INGEST_JSON_TEXT_H
#define INGEST_JSON_TEXT_H

#include "base/err.h"
#include "base/region.h"

/* An upper bound of the memory that jansson takes for a text, near enough: "{}," takes a hundred times its three bytes.
 * Allocates: no. */
size_t json_text_cost(struct span text);

/* Copy a text with every number beyond 64 bits (2^63, 1e400) made into text that starts with JSON_TEXT_LARGE, so that
 * the reader can say which field has it. Text that was there is left as it is.
 *
 * out  in the region
 */
#define JSON_TEXT_LARGE '\0'
err_t json_text_quote_large(struct span text, struct region *r, struct span *out);

#endif
