/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of value_cells.h. A thread writes a cell. */
#include "kernels/cuda/value_cells.h"

#include "kernels/cuda/launch.cuh"

enum { THREADS = 256 };

static __global__ void scatter(const struct value_column *columns, const struct value_cell *cells, size_t n)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;

  if (i >= n)
    return;
  struct value_cell cell = cells[i];
  struct value_column column = columns[cell.attribute];
  column.flags[cell.slot] = (uint8_t)cell.flags;
  if (column.numbers)
    column.numbers[cell.slot] = cell.value;
  if (column.codes)
    column.codes[cell.slot] = (uint32_t)cell.value;
}

err_code_t value_cells_scatter(struct device_stream *stream, const struct value_column *columns,
                               const struct value_cell *cells, size_t n)
{
  return n ? launch(stream, blocks_for(n, THREADS), THREADS, 0, scatter, columns, cells, n) : ERR_OK;
}
