/* SPDX-License-Identifier: Apache-2.0 */
/* Work on JSON text before it is parsed: estimate the memory for parsing it, and quote numbers that jansson cannot
 * hold.
 *
 * Thread: any. Blocks: no.
 */
#ifndef INGEST_JSON_TEXT_H
#define INGEST_JSON_TEXT_H

#include "base/err.h"
#include "base/region.h"

/* Return an upper bound, fairly tight, of the memory that jansson takes for a text. It can be far above the text's
 * size: the three bytes "{}," take a hundred times as much. Allocates: no. */
size_t json_text_cost(struct span text);

/* Copy a text, and turn every number that jansson cannot hold (such as 2^63 or 1e400) into a string that starts with
 * JSON_TEXT_LARGE. The reader can then name the field that has it. All other text is copied unchanged.
 *
 * out  lives in the region
 */
#define JSON_TEXT_LARGE '\0'
err_t json_text_quote_large(struct span text, struct region *r, struct span *out);

/* Return how many blanks a text begins with: spaces, tabs, and ends of lines. */
size_t json_text_blanks(struct span text);

#endif
