/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing JSON text of any size and content, with a limit on the memory that it takes.
 *
 * Thread: any. Blocks: no.
 */
#ifndef INGEST_JSON_PARSE_H
#define INGEST_JSON_PARSE_H

#include <jansson.h>

#include "base/err.h"
#include "base/region.h"

/* Limit on the memory that parsing a text may take, as estimated by json_text_cost(): about a list of a million
 * numbers.
 */
enum { JSON_COST_MAX = 64 << 20 };

/* Parse a text.
 *
 * flags      of jansson, besides JSON_ALLOW_NUL
 * r          memory for a changed copy of a text with large numbers
 * has_large  the text has numbers beyond 64 bits or the range of a double: json_parse_large() finds them
 * out        the caller releases it with json_decrefp()
 *
 * Returns ERR_OK; ERR_WIRE with the place of the mistake, or when the text would take more than JSON_COST_MAX;
 * ERR_TOO_LARGE beyond the region's limit; ERR_MEMORY. Allocates: from the heap.
 */
err_t json_parse(struct span text, size_t flags, struct region *r, bool *has_large, json_t **out);

/* Return the digits of a number that was too large for jansson; NULL for any other value. */
const char *json_parse_large(bool has_large, const json_t *json);

#endif
