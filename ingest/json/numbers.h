/* SPDX-License-Identifier: Apache-2.0 */
/* Converting numbers from the wire, which are back to back, little-endian and of one of three types, to f32.
 *
 * Thread: any. Blocks: no. Allocates: no.
 */
#ifndef INGEST_NUMBERS_H
#define INGEST_NUMBERS_H

#include "base/span.h"

enum numbers_type { NUMBERS_F32, NUMBERS_F16, NUMBERS_BF16 };

/* Return the size of one number in bytes. */
size_t numbers_width(enum numbers_type type);

/* Return the name of a type: "F32", "F16" or "BF16". */
const char *numbers_name(enum numbers_type type);

/* Convert bytes to f32. The conversion is exact: every F16 and BF16 number is also an f32 number, including subnormals,
 * infinities and NaN.
 *
 * bytes  their count is a multiple of numbers_width(type); any alignment
 * out    [bytes.n / numbers_width(type)]
 */
void numbers_decode(struct span bytes, enum numbers_type type, float *out);

/* Convert f32 numbers to little-endian bytes.
 *
 * out  [4 * n]
 */
void numbers_encode_f32(const float *v, size_t n, uint8_t *out);

/* Return the index of the first number that is infinite or NaN; n if there is none. */
size_t numbers_find_not_finite(const float *v, size_t n);

#endif
