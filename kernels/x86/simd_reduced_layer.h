/* SPDX-License-Identifier: Apache-2.0 */
/* What simd_bf16_layer.h and simd_int16_layer.h give to simd_mol_bounds.h: the products of one layer of the
 * cross gate for MOL_LANES items, roughly. To be included after simd_avx512.h. Private.
 *
 *   REDUCED_FACTORS(gate)   the factors of the proof
 *   reduced_layers_begin()  before the first layer, and reduced_layers_end() after the last
 *   reduced_layer_run(gate, layer, rows, n, pairs, out, prefetch, input)
 *     rows   [n][MOL_LANES]; rows behind them may be cleared, up to bf16_pad(n)
 *     pairs  room for max(bf16_pad(n_in), bf16_pad(n_out)) MOL_LANES words
 *     out    [n_out][MOL_LANES], without the bias; rows behind them may be written, up to bf16_pad(n_out)
 *     input  squares and largest of the rows; their units are written
 */
#ifndef KERNELS_X86_SIMD_REDUCED_LAYER_H
#define KERNELS_X86_SIMD_REDUCED_LAYER_H

#include "kernels/mol_reduced_gate.h"
#include "kernels/x86/simd_mol.h"

enum { MOL_REGS = MOL_LANES / FLOATS_N };

/* Of the inputs of a layer, by item: |x|^2, the largest |x|, and what 1 stands for where they are integers, else 0. */
struct layer_input {
  floats squares[MOL_REGS], largest[MOL_REGS], units[MOL_REGS];
};

#endif
