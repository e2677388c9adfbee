/* SPDX-License-Identifier: Apache-2.0 */
/* The interface that a layer format implements for simd_mol_bounds.h: the products of one layer of the cross gate, in
 * reduced precision, for MOL_LANES items. simd_bf16_layer.h and simd_int16_layer.h implement it. Private to the variant
 * files.
 *
 *   LAYER_SUFFIX            the format, for the name of the kernel
 *   REDUCED_FACTORS(gate)   the factors of the proof
 *   reduced_layers_begin()  call it before the first layer
 *   reduced_layers_end()    call it after the last layer
 *   reduced_layer_run(gate, layer, rows, n, pairs, out, prefetch, input)
 *     rows      [n][MOL_LANES]; rows after them, up to bf16_pad(n), may be cleared
 *     pairs     scratch: max(bf16_pad(n_in), bf16_pad(n_out)) * MOL_LANES words
 *     out       [n_out][MOL_LANES], without the bias; rows after them, up to bf16_pad(n_out), may be overwritten
 *     prefetch  cache lines to prefetch; those that were prefetched are removed
 *     input     squares and largest of the rows; the function fills in the units
 */
#ifndef KERNELS_X86_SIMD_REDUCED_LAYER_H
#define KERNELS_X86_SIMD_REDUCED_LAYER_H

#include "kernels/mol_reduced_gate.h"
#include "kernels/x86/simd_mol.h"

enum { MOL_REGS = MOL_LANES / FLOATS_N }; /* registers that hold one number of all items */

/* Measures of a layer's inputs, for each item: |x|^2, the largest |x_k|, and the scale: the value that the integer 1
 * stands for (0 in bf16). */
struct layer_input {
  floats squares[MOL_REGS], largest[MOL_REGS], units[MOL_REGS];
};

#endif
