/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of program_words.h. A warp makes a word of 64 slots, in two halves: a lane runs the program for its slot
 * with a stack in a register, and a ballot joins the results. All lanes run the same steps, so they part only while
 * they look up a value in a list. Values are read as they lie, in rows of 32. */
#include "kernels/cuda/program_words.h"

#include "kernels/cuda/warp.cuh"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP_LANES,
  BLOCKS_RESIDENT = 6, /* of a multiprocessor; with more, registers would spill */
  BLOCKS_MAX = 2048,   /* per program */
};

static_assert(FILTER_PROGRAM_DEPTH <= 64, "the stack is a register of 64 bits");

/* values [n], rising */
static __device__ __forceinline__ bool is_one_of(const int64_t *values, uint32_t n, int64_t value)
{
  uint32_t low = 0, high = n;

  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (values[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low < n && values[low] == value;
}

static __device__ __forceinline__ int64_t value_of(const struct value_column &column, size_t slot)
{
  return column.numbers ? column.numbers[slot] : (int64_t)column.codes[slot];
}

/* Is a comparison true for a slot? */
static __device__ __forceinline__ bool compare(const struct filter_step &step, const int64_t *values,
                                               const struct value_column &column, size_t slot)
{
  unsigned flags = column.flags[slot];

  if (!(flags & VALUE_CELL_PRESENT) || step.kind == FILTER_STEP_HAS)
    return flags & VALUE_CELL_PRESENT;
  if (step.kind == FILTER_STEP_TRUE || step.kind == FILTER_STEP_FALSE)
    return !(flags & VALUE_CELL_TRUE) == (step.kind == FILTER_STEP_FALSE);
  int64_t value = value_of(column, slot);
  if (step.kind == FILTER_STEP_RANGE)
    return step.low <= value && value <= step.high;
  return is_one_of(values + step.first, step.n, value);
}

/* Does a slot pass? The last bit that was pushed is bit 0 of the stack. */
static __device__ __forceinline__ bool passes(const struct program_words_task &task, const struct value_column *columns,
                                              size_t slot)
{
  uint64_t stack = 0;

  for (uint32_t i = 0; i < task.n_steps; i++) {
    const struct filter_step step = task.steps[i];
    if (step.kind == FILTER_STEP_AND)
      stack = stack >> 1 & (stack | ~(uint64_t)1);
    else if (step.kind == FILTER_STEP_OR)
      stack = stack >> 1 | (stack & 1);
    else if (step.kind == FILTER_STEP_NOT)
      stack ^= 1;
    else if (step.kind == FILTER_STEP_ALL || step.kind == FILTER_STEP_NONE)
      stack = stack << 1 | (step.kind == FILTER_STEP_ALL);
    else
      stack = stack << 1 | compare(step, task.values, columns[step.attribute], slot);
  }
  return stack & 1;
}

static __global__ void __launch_bounds__(THREADS, BLOCKS_RESIDENT) make_words(struct program_words_input input)
{
  begin_kernel();
  const struct program_words_task task = input.tasks[blockIdx.y];
  uint32_t n_set = 0;

  for (size_t w = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES; w * 64 < input.n_slots;
       w += (size_t)gridDim.x * WARPS) {
    uint64_t word = 0;
    for (unsigned half = 0; half < 2; half++) {
      size_t slot = w * 64 + half * WARP_LANES + warp_lane();
      bool is_set = slot < input.n_slots && input.present[slot] && passes(task, input.columns, slot);
      word |= (uint64_t)__ballot_sync(WARP_ALL, is_set) << half * WARP_LANES;
    }
    if (warp_lane() == 0)
      task.words[w] = word;
    n_set += (uint32_t)__popcll(word);
  }
  if (warp_lane() == 0 && n_set > 0)
    atomicAdd(task.n_set, n_set);
}

err_code_t program_words_make(struct device_stream *stream, const struct program_words_input *input)
{
  unsigned n_blocks = blocks_for((input->n_slots + 63) / 64, WARPS);

  if (input->n_slots == 0 || input->n_tasks == 0)
    return ERR_OK;
  if (n_blocks > BLOCKS_MAX)
    n_blocks = BLOCKS_MAX;
  return launch(stream, dim3(n_blocks, (unsigned)input->n_tasks), THREADS, 0, make_words, *input);
}
