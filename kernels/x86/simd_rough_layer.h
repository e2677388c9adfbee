/* SPDX-License-Identifier: Apache-2.0 */
/* What simd_split_layer.h and simd_fixed_layer.h give to simd_mol_bounds.h: the products of one layer of the
 * cross gate for MOL_LANES items, roughly. To be included after simd_avx512.h. Private.
 *
 *   ROUGH_FACTORS(gate)   the factors of the proof
 *   rough_layers_begin()  before the first layer, and rough_layers_end() after the last
 *   rough_layer_run(gate, layer, rows, n, pairs, out, ahead, input)
 *     rows   [n][MOL_LANES]; rows behind them may be cleared, up to split_pad(n)
 *     pairs  room for max(split_pad(n_in), split_pad(n_out)) MOL_LANES words
 *     out    [n_out][MOL_LANES], without the bias; rows behind them may be written, up to split_pad(n_out)
 *     input  squares and largest of the rows; their units are written
 */
#ifndef KERNELS_X86_SIMD_ROUGH_LAYER_H
#define KERNELS_X86_SIMD_ROUGH_LAYER_H

#include "kernels/mol_reduced_gate.h"
#include "kernels/x86/simd_mol.h"

enum { ROUGH_VECS = MOL_LANES / VEC_FLOATS };

/* Of the inputs of a layer, by item: |x|^2, the largest |x|, and what 1 stands for where they are integers, else 0. */
struct rough_input {
  vec squares[ROUGH_VECS], largest[ROUGH_VECS], units[ROUGH_VECS];
};

#endif
