/* SPDX-License-Identifier: Apache-2.0 */
/* The AMX tile instructions, under names that the tests can replace by plain C (tests/support/amx_tiles_model.h).
 * A tile is one of 8 registers of 16 rows of 64 bytes. The names are macros because a tile's number t must be a
 * constant. Private to the variant files.
 *
 * gcc 12 does not know which memory these instructions read, so barriers come before them.
 */
#ifndef KERNELS_X86_AMX_TILES_H
#define KERNELS_X86_AMX_TILES_H

#include <immintrin.h>
#include <stdint.h>

struct tile_shapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t n_rows[16];
};

/* Configure all 8 tiles at full size. Call tiles_end() before the caller returns: then the system has no tiles to save
 * when it switches threads. */
static inline void tiles_begin(void)
{
  static const struct tile_shapes shapes = {
    .palette = 1,
    .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
    .n_rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
  };

  __asm__ volatile("" ::"r"(&shapes) : "memory");
  _tile_loadconfig(&shapes);
}

#define tiles_end() _tile_release()

/* Set tile t to zeros. */
#define tile_zero(t) _tile_zero(t)

/* Load or store 16 rows of 64 bytes; rows are `step` bytes apart in memory. */
#define tile_load(t, from, step)        \
  do {                                  \
    __asm__ volatile("" ::: "memory");  \
    _tile_loadd(t, from, (long)(step)); \
  } while (0)

/* tile_load() of what is read once: what is read again stays in the first-level cache. */
#define tile_load_once(t, from, step)          \
  do {                                         \
    __asm__ volatile("" ::: "memory");         \
    _tile_stream_loadd(t, from, (long)(step)); \
  } while (0)

#define tile_store(t, to, step) _tile_stored(t, to, (long)(step))

/* sums[m][n] += sum over k < 64 of a[m][k] b[k / 4][n][k % 4], in 32-bit integers that wrap. a has signed bytes, b has
 * unsigned ones. */
#define tile_add_unsigned(sums, a, b) _tile_dpbsud(sums, a, b)

/* The same with signed bytes in b. */
#define tile_add_signed(sums, a, b) _tile_dpbssd(sums, a, b)

/* sums[m][n] += sum over k < 32 of a[m][k] b[k / 2][n][k % 2] in f32, of numbers in bf16. The order of the sum is the
 * processor's; subnormal numbers count as zero. */
#define tile_add_bf16(sums, a, b) _tile_dpbf16ps(sums, a, b)

#endif
