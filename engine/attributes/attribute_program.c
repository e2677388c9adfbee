/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the steps of a filter in postfix order, and bounds how many slots pass by the columns' counts. */
#include "engine/attributes/attribute_program.h"

#include <stdlib.h>

#include "base/compare.h"
#include "engine/attributes/attribute_column.h"

/* A program while it is written. */
struct writer {
  const struct attribute_columns *columns;
  struct filter_step *steps; /* [its room] */
  int64_t *values;           /* [its room] */
  size_t n_steps, n_values;
  size_t depth, depth_most; /* bits on the stack */
};

/* What a program needs room for. */
struct needs {
  size_t n_steps, n_values;
  bool has_sets; /* of texts */
};

static void count(const struct attribute_columns *c, const struct filter_node *node, struct needs *needs)
{
  needs->n_steps++;
  switch (node->kind) {
  case FILTER_AND:
  case FILTER_OR:
  case FILTER_NOT:
    needs->n_steps += node->operands.n; /* n - 1 joints for n operands, at most */
    for (size_t i = 0; i < node->operands.n; i++)
      count(c, node->operands.v[i], needs);
    return;
  case FILTER_ONE_OF:
    needs->n_values += c->v[node->attribute].type == ATTRIBUTE_NUMBER ? node->number_values.n : node->integer_values.n;
    return;
  case FILTER_TEXTS:
    needs->n_values += node->texts.n;
    needs->has_sets |= c->v[node->attribute].type == ATTRIBUTE_KEYWORDS;
    return;
  default:
    return;
  }
}

/* Writing -------------------- */

static uint64_t write_node(struct writer *w, const struct filter_node *node);

static struct filter_step *add_step(struct writer *w, enum filter_step_kind kind)
{
  struct filter_step *step = &w->steps[w->n_steps++];

  *step = (struct filter_step){ .kind = kind };
  return step;
}

/* Add a step that pushes a bit. */
static struct filter_step *add_leaf(struct writer *w, enum filter_step_kind kind, size_t attribute)
{
  struct filter_step *step = add_step(w, kind);

  step->attribute = (uint32_t)attribute;
  w->depth++;
  w->depth_most = w->depth > w->depth_most ? w->depth : w->depth_most;
  return step;
}

/* Each of these returns how many slots pass, at most. */

static uint64_t write_range(struct writer *w, const struct filter_node *node, int64_t low, int64_t high)
{
  const struct value_buckets *b = &w->columns->v[node->attribute].buckets;
  struct value_range r = value_buckets_range(b, low, high);
  struct filter_step *step = add_leaf(w, FILTER_STEP_RANGE, node->attribute);

  step->low = low;
  step->high = high;
  return value_buckets_count(b, r.first, r.last);
}

static uint64_t write_one_of(struct writer *w, const struct filter_node *node)
{
  const struct attribute_column *column = &w->columns->v[node->attribute];
  struct filter_step *step = add_leaf(w, FILTER_STEP_ONE, node->attribute);

  step->first = (uint32_t)w->n_values;
  if (column->type == ATTRIBUTE_NUMBER) {
    for (size_t i = 0; i < node->number_values.n; i++)
      w->values[w->n_values++] = attribute_column_key(node->number_values.v[i]);
  } else {
    for (size_t i = 0; i < node->integer_values.n; i++)
      w->values[w->n_values++] = node->integer_values.v[i];
  }
  step->n = (uint32_t)w->n_values - step->first;
  return column->n_present;
}

static uint64_t write_texts(struct writer *w, const struct filter_node *node)
{
  const struct dictionary *texts = &w->columns->v[node->attribute].texts;
  size_t first = w->n_values;
  uint64_t most = 0;

  for (size_t i = 0; i < node->texts.n; i++) {
    uint32_t code = dictionary_find(texts, node->texts.v[i]);
    if (code == DICTIONARY_NONE)
      continue;
    w->values[w->n_values++] = code;
    most += texts->entries[code].slots.n;
  }
  if (w->n_values == first) {
    add_leaf(w, FILTER_STEP_NONE, node->attribute);
    return 0;
  }
  qsort(w->values + first, w->n_values - first, sizeof *w->values, compare_uint32);
  struct filter_step *step = add_leaf(w, FILTER_STEP_ONE, node->attribute);
  step->first = (uint32_t)first;
  step->n = (uint32_t)(w->n_values - first);
  return most;
}

static uint64_t write_is(struct writer *w, const struct filter_node *node)
{
  const struct attribute_column *column = &w->columns->v[node->attribute];

  add_leaf(w, node->is_true ? FILTER_STEP_TRUE : FILTER_STEP_FALSE, node->attribute);
  return node->is_true ? column->n_true : column->n_present - column->n_true;
}

static uint64_t write_leaf(struct writer *w, const struct filter_node *node)
{
  switch (node->kind) {
  case FILTER_NONE:
    add_leaf(w, FILTER_STEP_NONE, 0);
    return 0;
  case FILTER_HAS:
    add_leaf(w, FILTER_STEP_HAS, node->attribute);
    return w->columns->v[node->attribute].n_present;
  case FILTER_IS:
    return write_is(w, node);
  case FILTER_INTEGERS:
    return write_range(w, node, node->integers.low, node->integers.high);
  case FILTER_NUMBERS:
    return write_range(w, node, attribute_column_bound(node->numbers.low), attribute_column_bound(node->numbers.high));
  case FILTER_ONE_OF:
    return write_one_of(w, node);
  case FILTER_TEXTS:
    return write_texts(w, node);
  default:
    add_leaf(w, FILTER_STEP_ALL, 0);
    return UINT64_MAX;
  }
}

/* Join each operand to those before it as soon as it is written, so that the stack stays as deep as the tree. */
static uint64_t write_operands(struct writer *w, const struct filter_node *node)
{
  bool is_and = node->kind == FILTER_AND;
  uint64_t most = write_node(w, node->operands.v[0]);

  for (size_t i = 1; i < node->operands.n; i++) {
    uint64_t other = write_node(w, node->operands.v[i]);
    if (is_and)
      most = other < most ? other : most;
    else if (__builtin_add_overflow(most, other, &most))
      most = UINT64_MAX;
    add_step(w, is_and ? FILTER_STEP_AND : FILTER_STEP_OR);
    w->depth--;
  }
  return most;
}

static uint64_t write_node(struct writer *w, const struct filter_node *node)
{
  if (node->kind == FILTER_AND || node->kind == FILTER_OR)
    return write_operands(w, node);
  if (node->kind != FILTER_NOT)
    return write_leaf(w, node);
  write_node(w, node->operands.v[0]);
  add_step(w, FILTER_STEP_NOT);
  return UINT64_MAX;
}

err_t attribute_program_make(const struct attribute_columns *c, const struct filter_node *filter, struct region *region,
                             const struct filter_program **out)
{
  struct writer w = { .columns = c };
  struct needs needs = { 0 };
  struct filter_program *program;

  *out = NULL;
  count(c, filter, &needs);
  if (needs.has_sets || needs.n_values > FILTER_PROGRAM_VALUES)
    return ERR_OK;
  TRY(region_array(region, 1, sizeof *program, &program));
  TRY(region_array(region, needs.n_steps, sizeof *w.steps, &w.steps));
  TRY(region_array(region, needs.n_values, sizeof *w.values, &w.values));
  uint64_t most = write_node(&w, filter);
  if (w.depth_most > FILTER_PROGRAM_DEPTH)
    return ERR_OK;
  *program = (struct filter_program){ w.steps, w.values, w.n_steps, w.n_values, most };
  *out = program;
  return ERR_OK;
}
