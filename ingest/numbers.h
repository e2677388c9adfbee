/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as they travel: back to back, little-endian, in one of three widths; and as f32, which is what they become.
 *
 * Thread: any. Blocks: no. Allocates: no.
 */
#ifndef INGEST_NUMBERS_H
#define INGEST_NUMBERS_H

#include "base/span.h"

enum numbers_type { NUMBERS_F32, NUMBERS_F16, NUMBERS_BF16 };

/* Bytes of one number. */
size_t numbers_width(enum numbers_type type);

/* "F32", "F16", "BF16". */
const char *numbers_name(enum numbers_type type);

/* Turn bytes into f32. Every F16 and BF16 number, subnormals, infinities and NaN included, is an f32 number: exact.
 *
 * bytes  a multiple of numbers_width(type); any alignment
 * out    bytes.n / numbers_width(type) numbers
 */
void numbers_decode(struct span bytes, enum numbers_type type, float *out);

/* f32 numbers as little-endian bytes: 4 * n of them. */
void numbers_encode_f32(const float *v, size_t n, uint8_t *out);

/* Index of the first number that is infinite or NaN; n where there is none. */
size_t numbers_find_not_finite(const float *v, size_t n);

#endif
