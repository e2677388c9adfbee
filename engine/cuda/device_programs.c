/* SPDX-License-Identifier: Apache-2.0 */
/* Places programs among the worker's inputs, and their words among those of filters. */
#include "engine/cuda/device_programs.h"

#include <assert.h>

size_t device_programs_bytes(const struct filter_program *program)
{
  enum { ALIGN_BYTES = 512 }; /* of two arrays */

  return program->n_steps * sizeof *program->steps + program->n_values * sizeof *program->values + ALIGN_BYTES;
}

err_t device_programs_begin(struct device_worker *w, const struct device_programs_source *source,
                            struct device_programs *out)
{
  *out = (struct device_programs){ .worker = w, .source = *source };
  TRY(device_worker_input(w, DEVICE_WORDS_MAX, sizeof *out->tasks, &out->tasks, &out->device_tasks));
  return device_worker_output(w, DEVICE_WORDS_MAX, sizeof *out->counts, &out->device_counts, &out->counts);
}

/* Return the index of a program; n if it is not there. */
static size_t find(const struct device_programs *p, const struct filter_program *program)
{
  size_t i = 0;

  while (i < p->n && p->of[i] != program)
    i++;
  return i;
}

err_t device_programs_add(struct device_programs *p, const struct filter_program *program, const uint64_t **words)
{
  size_t i = find(p, program);
  struct program_words_task *task = &p->tasks[i];

  if (i < p->n) {
    *words = task->words;
    return ERR_OK;
  }
  assert(p->n < DEVICE_WORDS_MAX);
  *task = (struct program_words_task){ .n_set = p->device_counts + i, .n_steps = (uint32_t)program->n_steps };
  TRY(device_worker_upload(p->worker, program->steps, program->n_steps, sizeof *program->steps, &task->steps));
  TRY(device_worker_upload(p->worker, program->values, program->n_values, sizeof *program->values, &task->values));
  task->words = device_words_room(&p->worker->words);
  *words = task->words;
  p->of[p->n++] = program;
  return ERR_OK;
}

err_t device_programs_run(const struct device_programs *p)
{
  struct device_stream *stream = p->worker->stream;
  const struct program_words_input input = { .tasks = p->device_tasks,
                                             .n_tasks = p->n,
                                             .columns = p->source.attributes->columns,
                                             .present = p->source.present,
                                             .n_slots = p->source.n_slots };

  TRY(device_fill(stream, p->device_counts, 0, p->n * sizeof *p->device_counts));
  return program_words_make(stream, &input);
}

uint64_t device_programs_count(const struct device_programs *p, const struct filter_program *program)
{
  size_t i = find(p, program);

  assert(i < p->n);
  return p->counts[i];
}
