/* SPDX-License-Identifier: Apache-2.0 */
/* What filters mean: random filters, parsed from their text, admit exactly the items that the text itself admits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/filter/filter.h"
#include "tests/support/assert_ok.h"
#include "tests/support/filter_draw.h"
#include "tests/support/filter_matches.h"

enum { ROUNDS = 20000, ITEMS = 24, LEAVES_MAX = 12 };

static uint64_t seed;

static void parse_drawn(const struct draw *d, struct region *region, const struct filter_node **out)
{
  if (filter_parse(span_of(d->text, d->n_text), d->parameters, d->n_parameters, &d->attributes, region, out) != ERR_OK)
    fail_msg("%s: %s", d->text, err_message());
}

/* Print a tree, parse what was printed, and print it again. */
static const struct filter_node *parse_printed(const struct draw *d, const struct filter_node *root,
                                               struct region *region)
{
  const struct filter_node *again;
  struct span printed, printed_again;

  assert_ok(filter_print(root, &d->attributes, region, &printed));
  if (root->kind == FILTER_ALL || root->kind == FILTER_NONE)
    return root;
  if (filter_parse(printed, NULL, 0, &d->attributes, region, &again) != ERR_OK)
    fail_msg("%s: printed as %.*s: %s", d->text, (int)printed.n, (const char *)printed.p, err_message());
  assert_ok(filter_print(again, &d->attributes, region, &printed_again));
  if (!span_equal(printed, printed_again))
    fail_msg("%s: printed as\n%.*s, then as\n%.*s", d->text, (int)printed.n, (const char *)printed.p,
             (int)printed_again.n, (const char *)printed_again.p);
  return again;
}

static void a_parsed_filter_admits_what_its_text_admits(void **state)
{
  static struct draw d;
  struct dice dice = { seed };
  struct region region = { 0 };
  size_t n_admitted = 0;

  (void)state;
  d.dice = &dice;
  for (size_t round = 0; round < ROUNDS; round++) {
    const struct filter_node *root, *again;
    region_reset(&region);
    draw_filter(&d, 1 + dice_below(&dice, LEAVES_MAX));
    parse_drawn(&d, &region, &root);
    again = parse_printed(&d, root, &region);
    for (size_t i = 0; i < ITEMS; i++) {
      struct draw_item item;
      draw_item(&d, &item);
      bool expected = draw_admits(&d, 0, &item);
      n_admitted += expected;
      if (filter_matches(root, item.values) != expected || filter_matches(again, item.values) != expected)
        fail_msg("round %zu, item %zu: it is %s, and not so by the tree: %s", round, i,
                 expected ? "admitted" : "refused", d.text);
    }
  }
  assert_in_range(n_admitted, ROUNDS * ITEMS / 5, ROUNDS * ITEMS / 5 * 4); /* the draw is worth something */
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_parsed_filter_admits_what_its_text_admits),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
