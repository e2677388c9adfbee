/* SPDX-License-Identifier: Apache-2.0 */
/* The tile instructions (AMX), 8 registers t of 16 rows of 64 bytes. Macros, since t must be a constant. The tests have
 * the same words as plain C (tests/support/amx_tiles_model.h). Private.
 *
 * gcc 12 does not say of these instructions what memory they read: hence the barriers.
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

/* All 8 tiles at their full size. To be followed by tiles_end() before the function returns: then nothing of them has
 * to be saved for a thread that waits. */
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

/* t = 0 */
#define tile_zero(t) _tile_zero(t)

/* Rows of 64 bytes, step bytes apart. */
#define tile_load(t, from, step)        \
  do {                                  \
    __asm__ volatile("" ::: "memory");  \
    _tile_loadd(t, from, (long)(step)); \
  } while (0)
#define tile_store(t, to, step) _tile_stored(t, to, (long)(step))

/* sums[m][n] += sum over k of a[m][2k] b[k][2n] + a[m][2k + 1] b[k][2n + 1], numbers of a and b in bf16, sums in f32.
 */
#define tile_add_products(sums, a, b) _tile_dpbf16ps(sums, a, b)

#endif
