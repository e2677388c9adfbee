/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of filters, run over copies of the columns, find the slots that the filters find. The copies are kept by the
 * marks of written slots alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "engine/attributes/attribute_program.h"
#include "tests/support/attribute_model.h"

enum { CAPACITY = 700, WORDS = (CAPACITY + 63) / 64, DEEP = 80 };

struct world {
  struct dice dice;
  struct attribute_model model;
  struct attribute_columns *columns;
  struct attribute_cell copies[MODEL_ATTRIBUTES][WORDS * 64];
  size_t n_slots;
  struct region region;
};

static uint64_t seed;

static struct world *open_world(uint64_t salt)
{
  struct world *w = calloc(1, sizeof *w);
  const struct attributes attributes = model_attributes(&w->model);
  const struct kernels *kernels;

  w->dice.state = seed + salt;
  assert_ok(kernels_get(isa_detect(), &kernels));
  assert_ok(attribute_columns_open(&attributes, kernels, CAPACITY, &w->columns));
  assert_ok(attribute_columns_mark(w->columns));
  return w;
}

static void close_world(struct world *w)
{
  attribute_columns_close(&w->columns);
  region_fini(&w->region);
  free(w);
}

/* Changes -------------------- */

static void put_some(struct world *w, uint32_t slot)
{
  struct value elements[MODEL_SET_MAX], value;

  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    if (dice_below(&w->dice, 3) == 0)
      continue;
    value = (struct value){ .kind = VALUE_NULL };
    if (dice_below(&w->dice, 4))
      model_draw_value(&w->model, &w->dice, i, elements, &value);
    assert_ok(attribute_columns_put(w->columns, slot, i, &value));
  }
}

static void delete (struct world *w)
{
  uint32_t slot = (uint32_t)dice_below(&w->dice, w->n_slots), last = (uint32_t)--w->n_slots;

  attribute_columns_drop(w->columns, slot);
  if (slot != last)
    assert_ok(attribute_columns_move(w->columns, last, slot));
}

/* growth: more than 50 if there are to be more slots */
static void churn(struct world *w, size_t n, size_t growth)
{
  for (size_t i = 0; i < n; i++) {
    if (w->n_slots && dice_below(&w->dice, 3) == 0)
      put_some(w, (uint32_t)dice_below(&w->dice, w->n_slots));
    else if (w->n_slots < CAPACITY && dice_below(&w->dice, 100) < growth)
      put_some(w, (uint32_t)w->n_slots++);
    else if (w->n_slots)
      delete (w);
  }
}

/* Bring the copies up to date. */
static void take_marks(struct world *w)
{
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    uint64_t slots;
    for (size_t word = 0; attribute_columns_take_marks(w->columns, i, word, &word, &slots); word++) {
      for (; slots; slots &= slots - 1) {
        uint32_t slot = (uint32_t)(word * 64 + (size_t)__builtin_ctzll(slots));
        w->copies[i][slot] = attribute_columns_cell(w->columns, i, slot);
      }
    }
  }
}

/* Programs -------------------- */

static bool has_value(const struct filter_program *p, const struct filter_step *step, int64_t value)
{
  for (uint32_t i = 0; i < step->n; i++) {
    if (p->values[step->first + i] == value)
      return true;
  }
  return false;
}

static bool leaf(const struct filter_program *p, const struct filter_step *step, const struct attribute_cell *cell)
{
  switch ((enum filter_step_kind)step->kind) {
  case FILTER_STEP_ALL:
    return true;
  case FILTER_STEP_HAS:
    return cell->is_present;
  case FILTER_STEP_TRUE:
    return cell->is_present && cell->is_true;
  case FILTER_STEP_FALSE:
    return cell->is_present && !cell->is_true;
  case FILTER_STEP_RANGE:
    return cell->is_present && step->low <= cell->value && cell->value <= step->high;
  case FILTER_STEP_ONE:
    return cell->is_present && has_value(p, step, cell->value);
  default:
    return false;
  }
}

static bool passes(const struct world *w, const struct filter_program *p, size_t slot)
{
  bool stack[FILTER_PROGRAM_DEPTH];
  size_t n = 0;

  for (size_t i = 0; i < p->n_steps; i++) {
    const struct filter_step *step = &p->steps[i];
    if (step->kind == FILTER_STEP_NOT) {
      stack[n - 1] = !stack[n - 1];
    } else if (step->kind == FILTER_STEP_AND || step->kind == FILTER_STEP_OR) {
      bool b = stack[--n];
      stack[n - 1] = step->kind == FILTER_STEP_AND ? stack[n - 1] && b : stack[n - 1] || b;
    } else {
      assert_true(n < FILTER_PROGRAM_DEPTH);
      stack[n++] = leaf(p, step, &w->copies[step->attribute][slot]);
    }
  }
  assert_int_equal(n, 1);
  return stack[0];
}

/* Returns whether the filter has a program. */
static bool check_filter(struct world *w, const struct filter_node *filter)
{
  const struct filter_program *program;
  uint64_t words[WORDS], n = 0;

  assert_ok(attribute_program_make(w->columns, filter, &w->region, &program));
  if (!program)
    return false;
  assert_ok(attribute_columns_select(w->columns, filter, 0, WORDS, words, &w->region));
  for (size_t slot = 0; slot < w->n_slots; slot++) {
    assert_int_equal(passes(w, program, slot), bits_get(words, slot));
    n += bits_get(words, slot);
  }
  assert_true(n <= program->most);
  return true;
}

/* Tests -------------------- */

static void programs_find_what_filters_find(void **state)
{
  struct world *w = open_world(1);
  size_t n_programs = 0;

  (void)state;
  for (size_t round = 0; round < 300; round++) {
    churn(w, dice_below(&w->dice, 200), round / 10 % 2 ? 20 : 80);
    take_marks(w);
    region_reset(&w->region);
    for (size_t i = 0; i < 20; i++)
      n_programs += check_filter(w, model_draw_filter(&w->model, &w->dice, &w->region, 4));
  }
  assert_true(n_programs > 1000);
  close_world(w);
}

static void loaded_columns_are_marked_whole(void **state)
{
  struct world *w = open_world(2);
  struct value elements[MODEL_SET_MAX], value;

  (void)state;
  for (uint32_t slot = 0; slot < CAPACITY; slot++) {
    model_draw_value(&w->model, &w->dice, slot % MODEL_ATTRIBUTES, elements, &value);
    assert_ok(attribute_columns_load(w->columns, slot, slot % MODEL_ATTRIBUTES, &value));
  }
  assert_ok(attribute_columns_finish(w->columns, CAPACITY));
  w->n_slots = CAPACITY;
  take_marks(w);
  for (size_t i = 0; i < 200; i++)
    check_filter(w, model_draw_filter(&w->model, &w->dice, &w->region, 3));
  close_world(w);
}

static void sets_of_texts_and_very_many_values_have_no_program(void **state)
{
  struct world *w = open_world(3);
  static int64_t values[FILTER_PROGRAM_VALUES + 1];
  const struct span text = span_of_str("t1");
  struct filter_node node = { .kind = FILTER_TEXTS, .attribute = 2, .texts = { &text, 1 } };

  (void)state;
  assert_false(check_filter(w, &node));
  node.attribute = 1;
  assert_true(check_filter(w, &node));
  for (size_t i = 0; i <= FILTER_PROGRAM_VALUES; i++)
    values[i] = (int64_t)i;
  node = (struct filter_node){ .kind = FILTER_ONE_OF, .attribute = 3 };
  node.integer_values.v = values;
  node.integer_values.n = FILTER_PROGRAM_VALUES;
  assert_true(check_filter(w, &node));
  node.integer_values.n++;
  assert_false(check_filter(w, &node));
  close_world(w);
}

static void what_the_stack_cannot_hold_has_no_program(void **state)
{
  static struct filter_node nodes[DEEP];
  static const struct filter_node *operands[DEEP][2];
  struct world *w = open_world(4);

  (void)state;
  nodes[0] = (struct filter_node){ .kind = FILTER_HAS };
  for (size_t i = 1; i < DEEP; i++) {
    operands[i][0] = &nodes[0];
    operands[i][1] = &nodes[i - 1];
    nodes[i] = (struct filter_node){ .kind = FILTER_OR, .operands = { operands[i], 2 } };
  }
  assert_true(check_filter(w, &nodes[FILTER_PROGRAM_DEPTH - 1]));
  assert_false(check_filter(w, &nodes[FILTER_PROGRAM_DEPTH]));
  close_world(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(programs_find_what_filters_find),
    cmocka_unit_test(loaded_columns_are_marked_whole),
    cmocka_unit_test(sets_of_texts_and_very_many_values_have_no_program),
    cmocka_unit_test(what_the_stack_cannot_hold_has_no_program),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
