/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a filter: the position of the mistake, and what a value or a piece of the text is called. */
#ifndef ENGINE_FILTER_FILTER_FAIL_H
#define ENGINE_FILTER_FILTER_FAIL_H

#include "base/err.h"
#include "base/value.h"

/* Bytes of a piece of the text in an error, with quotes and zero. */
enum { FILTER_PIECE_BYTES = 64 };

/* Store a failure "filter: at character N: ..." and return ERR_QUERY. Use FILTER_FAIL.
 *
 * text    the filter; UTF-8 up to the offset
 * offset  the byte where the mistake begins
 */
err_code_t filter_fail_at(struct span text, size_t offset, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Return a failure with a position and a printf-style message. */
#define FILTER_FAIL(text, offset, ...) return filter_fail_at((text), (offset), __FILE__, __LINE__, __VA_ARGS__)

/* Copy a piece of text between quotes. A piece that is too long is cut between two characters and ends in "...". */
const char *filter_fail_quote(struct span piece, const char *quote, char out[FILTER_PIECE_BYTES]);

#endif
