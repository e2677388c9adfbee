/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the words of filters on the device: runs each filter's program (kernels/filter_program.h) for all slots. */
#ifndef KERNELS_CUDA_PROGRAM_WORDS_H
#define KERNELS_CUDA_PROGRAM_WORDS_H

#include "kernels/cuda/value_cells.h"
#include "kernels/filter_program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program, and where its words go. All pointers are device pointers. */
struct program_words_task {
  const struct filter_step *steps; /* [n_steps] */
  const int64_t *values;
  uint64_t *words; /* [n_slots in words of 64] bit s % 64 of words[s / 64]: slot s is present and passes. Bits from
                      n_slots on are 0 */
  uint32_t *n_set; /* the bits that are set are added to it */
  uint32_t n_steps;
};

struct program_words_input {
  const struct program_words_task *tasks; /* [n_tasks] on the device */
  size_t n_tasks;
  const struct value_column *columns; /* by attribute; on the device */
  const uint8_t *present;             /* [n_slots] on the device: not 0 if the slot has a part of the space */
  size_t n_slots;
};

/* Returns ERR_DEVICE on failure. */
err_t program_words_make(struct device_stream *stream, const struct program_words_input *input);

#ifdef __cplusplus
}
#endif

#endif
