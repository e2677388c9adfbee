/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the `key=value` pairs of a log line back, for those who treat a value for itself: the limit on repeated
 * events, and the journal's fields. */
#ifndef BASE_LOG_PAIRS_H
#define BASE_LOG_PAIRS_H

#include <stdbool.h>

#include "base/span.h"

struct log_pair {
  struct span key;
  struct span value; /* without its quotes; log_pairs_unquote() decodes it */
};

/* Take the next pair. Words without `=` are skipped.
 *
 * text  where to go on; it moves behind the pair
 * out   points into the text
 *
 * Returns false at the end of the text.
 */
bool log_pairs_next(const char **text, struct log_pair *out);

/* Find the first pair with this key. */
bool log_pairs_find(const char *text, const char *key, struct log_pair *out);

/* Decode the \xHH of log_quote().
 *
 * out  [value.n] bytes at least
 *
 * Returns the number of bytes written.
 */
size_t log_pairs_unquote(struct span value, char *out);

#endif
