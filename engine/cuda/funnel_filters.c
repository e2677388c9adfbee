/* SPDX-License-Identifier: Apache-2.0 */
/* Sends each filter of a group once: its words, or the program that makes them. */
#include "engine/cuda/funnel_filters.h"

#include "base/size.h"

/* The query's words, if they leave items out, or the program that makes them. Equal addresses mean the same words.
 * NULL: all present items are admitted, or excluded. */
static const void *words_of(const struct search_batch *batch, size_t q)
{
  const struct admit *admit = &batch->results[q].admit;

  if (admit->program)
    return admit->program;
  return admit_leaves_out(admit, batch->n_items) ? admit->words : NULL;
}

/* Whether the query has words, and no query before it has the same. */
static bool are_words_new(const struct search_batch *batch, size_t q)
{
  const void *words = words_of(batch, q);

  for (size_t i = 0; words && i < q; i++) {
    if (words_of(batch, i) == words)
      return false;
  }
  return words;
}

size_t funnel_n_filters(const struct search_batch *batch)
{
  size_t n = 0;

  for (size_t q = 0; q < batch->n; q++)
    n += are_words_new(batch, q);
  return n;
}

size_t funnel_filter_bytes(const struct search_batch *batch)
{
  size_t most = 0;

  for (size_t q = 0; q < batch->n; q++) {
    const struct filter_program *program = batch->results[q].admit.program;
    most = program ? size_max(most, device_programs_bytes(program)) : most;
  }
  return most;
}

/* Send the words of the batch's query q, or the program that makes them, unless those of a query before it in the group
 * are the same. */
static err_t send_words(const struct funnel *f, struct device_programs *programs, size_t first, size_t q,
                        const uint64_t **of)
{
  const struct admit *admit = &f->batch->results[q].admit;
  const void *words = words_of(f->batch, q);

  for (size_t i = first; i < q; i++) {
    if (words_of(f->batch, i) == words) {
      of[q - first] = of[i - first];
      return ERR_OK;
    }
  }
  of[q - first] = NULL;
  if (admit->program)
    return device_programs_add(programs, admit->program, &of[q - first]);
  return words ? device_worker_words(f->batch->worker, words, f->batch->n_slots, admit->words_id, &of[q - first])
               : ERR_OK;
}

/* Does the device make words of a query in the group? */
static bool has_programs(const struct funnel *f, const struct funnel_group *group)
{
  for (size_t q = group->first; q < group->first + group->n; q++) {
    if (f->batch->results[q].admit.program)
      return true;
  }
  return false;
}

err_t funnel_upload_filters(const struct funnel *f, struct funnel_group *group)
{
  const struct device_programs_source source = { f->batch->attributes, f->columns->rows.present, f->batch->n_slots };
  const uint64_t **of;

  group->programs = (struct device_programs){ 0 };
  if (has_programs(f, group))
    TRY(device_programs_begin(f->batch->worker, &source, &group->programs));
  group->admitted = (struct admitted_words){ NULL };
  group->words = NULL;
  if (funnel_n_filters(f->batch) == 0)
    return ERR_OK;
  TRY(device_worker_input(f->batch->worker, group->n, sizeof *of, &of, &group->admitted.of));
  for (size_t q = group->first; q < group->first + group->n; q++)
    TRY(send_words(f, &group->programs, group->first, q, of));
  group->words = of;
  return ERR_OK;
}

void funnel_count_admitted(const struct funnel *f, const struct funnel_group *group)
{
  for (size_t q = group->first; q < group->first + group->n; q++) {
    struct admit *admit = &f->batch->results[q].admit;
    if (admit->program)
      admit->n_admitted = device_programs_count(&group->programs, admit->program) - admit->n_excluded;
  }
}
