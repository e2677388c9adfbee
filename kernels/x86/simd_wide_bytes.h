/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of bytes for simd_lists.h, without VNNI: bytes are widened to 16 bits, even and odd bytes apart. Include
 * it after a simd_numbers_*.h. Private to the variant files.
 */
#ifndef KERNELS_X86_SIMD_WIDE_BYTES_H
#define KERNELS_X86_SIMD_WIDE_BYTES_H

/* An item's unsigned bytes as 16-bit numbers. */
struct item_bytes {
  ints even, odd;
};

/* A query row's signed bytes as 16-bit numbers. */
struct row_bytes {
  ints even, odd;
};

static inline struct item_bytes item_bytes_split(ints x)
{
  return (struct item_bytes){ ints_even_bytes(x), ints_odd_bytes(x) };
}

static inline struct row_bytes row_bytes_split(ints x)
{
  return (struct row_bytes){ ints_even_signed_bytes(x), ints_odd_signed_bytes(x) };
}

static inline ints add_dot_words(ints sums, ints x, ints row)
{
  return ints_add(sums, ints_multiply_pairs(x, row));
}

static inline ints add_dot_bytes(ints sums, struct item_bytes x, struct row_bytes row)
{
  return add_dot_words(add_dot_words(sums, x.even, row.even), x.odd, row.odd);
}

#endif
