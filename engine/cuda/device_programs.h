/* SPDX-License-Identifier: Apache-2.0 */
/* Words of filters that the device makes for the queries of a group, from copies of the attribute columns
 * (device_attributes.h). Programs go to the device with the other inputs, one kernel makes all words in the search's
 * stream, and the numbers of admitted items come back with the other outputs. So they cost neither a copy nor a wait.
 *
 * Thread: the worker.
 */
#ifndef ENGINE_CUDA_DEVICE_PROGRAMS_H
#define ENGINE_CUDA_DEVICE_PROGRAMS_H

#include "engine/cuda/device_attributes.h"
#include "engine/cuda/device_worker.h"
#include "kernels/cuda/program_words.h"

/* What programs run over. */
struct device_programs_source {
  const struct device_attributes *attributes;
  const uint8_t *present; /* device_rows.present of the space */
  size_t n_slots;
};

struct device_programs {
  struct device_worker *worker;
  struct device_programs_source source;
  const struct filter_program *of[DEVICE_WORDS_MAX]; /* [n] each once */
  size_t n;
  struct program_words_task *tasks;              /* [DEVICE_WORDS_MAX] */
  const struct program_words_task *device_tasks; /* the same on the device */
  uint32_t *device_counts;                       /* [DEVICE_WORDS_MAX] */
  const uint32_t *counts; /* the same on the host, after device_worker_receive(): bits of the words of of[i] */
};

/* The most inputs that one program takes. */
size_t device_programs_bytes(const struct filter_program *program);

/* Begin without programs. This and the next ones return ERR_DEVICE as those of device_worker.h. */
err_t device_programs_begin(struct device_worker *w, const struct device_programs_source *source,
                            struct device_programs *out);

/* Add a program, unless it is there, and return where its words will be. They stay as long as those of
 * device_worker_words(), and count as one of the DEVICE_WORDS_MAX. */
err_t device_programs_add(struct device_programs *p, const struct filter_program *program, const uint64_t **words);

/* Start to make the words, after device_worker_send(). */
err_t device_programs_run(const struct device_programs *p);

/* How many items does a program that was added admit? After device_worker_receive(). */
uint64_t device_programs_count(const struct device_programs *p, const struct filter_program *program);

#endif
