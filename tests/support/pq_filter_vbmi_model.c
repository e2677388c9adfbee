/* SPDX-License-Identifier: Apache-2.0 */
/* pq_filter() and pq_scan() of the VBMI level, with its instruction in plain C. Compiled with AVX-512BW. */
#include <immintrin.h>

#include "tests/support/vbmi_model.h"

#define pq_filter_vbmi pq_filter_vbmi_model
#define pq_cells_vbmi pq_cells_vbmi_model
#define pq_scan_vbmi pq_scan_vbmi_model
#include "kernels/x86/pq_filter_vbmi.c"
