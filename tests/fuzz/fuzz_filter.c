/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing the parser of filters: any bytes are a filter or an error with a message. A filter is within the limits,
 * takes memory in proportion to its text, and is printed as text that is parsed to an equal filter.
 *
 * Random inputs are good filters, changed a little (fuzz_main.h).
 */
#include "tests/fuzz/fuzz_main.h"

#include "base/utf8.h"
#include "engine/filter/filter.h"
#include "tests/support/filter_draw.h"
#include "tests/support/filter_matches.h"

/* Memory for a byte of text, and for a filter: each node, value and operand takes some. */
enum { TAKEN_TIMES = 256, TAKEN_MORE = 4096 };

static bool has_operands(const struct filter_node *node)
{
  return node->kind == FILTER_AND || node->kind == FILTER_OR || node->kind == FILTER_NOT;
}

static void check_leaf(const struct filter_node *node)
{
  CHECK(node->attribute < N_FILTER_ATTRIBUTES);
  if (node->kind == FILTER_INTEGERS)
    CHECK(node->integers.low <= node->integers.high);
  if (node->kind == FILTER_NUMBERS)
    CHECK(node->numbers.low <= node->numbers.high);
  if (node->kind == FILTER_ONE_OF)
    CHECK(node->integer_values.n >= 2);
  if (node->kind == FILTER_TEXTS) {
    CHECK(node->texts.n >= 1);
    for (size_t i = 1; i < node->texts.n; i++)
      CHECK(span_compare(node->texts.v[i - 1], node->texts.v[i]) < 0);
  }
}

/* Check a tree that is not a constant. Returns its number of nodes. */
static size_t check_tree(const struct filter_node *node, size_t depth)
{
  size_t n = 1;

  CHECK(depth <= FILTER_DEPTH_MAX);
  CHECK(node->kind != FILTER_ALL && node->kind != FILTER_NONE);
  if (!has_operands(node)) {
    check_leaf(node);
    return n;
  }
  CHECK(node->kind == FILTER_NOT ? node->operands.n == 1 : node->operands.n >= 2);
  for (size_t i = 0; i < node->operands.n; i++) {
    CHECK(node->operands.v[i]->kind != node->kind);
    n += check_tree(node->operands.v[i], depth + 1);
  }
  return n;
}

static void check_print(const struct filter_node *root, const struct attributes *attributes)
{
  const struct filter_node *again;
  struct span printed, printed_again;

  CHECK(filter_print(root, attributes, &region, &printed) == ERR_OK);
  if (filter_parse(printed, NULL, 0, attributes, &region, &again) != ERR_OK) {
    /* Printing `x != y` takes a not more, and printing numbers more bytes. */
    CHECK(strstr(err_message(), "inside one another") || strstr(err_message(), "limit of 16384"));
    return;
  }
  CHECK(filter_print(again, attributes, &region, &printed_again) == ERR_OK);
  CHECK(span_equal(printed, printed_again));
}

static void check_filter(struct span text, const struct value *parameters, size_t n)
{
  static const struct value absent[N_FILTER_ATTRIBUTES];
  struct attributes attributes = filter_attributes();
  const struct filter_node *root = NULL;

  region_reset(&region);
  err_code_t err = filter_parse(text, parameters, n, &attributes, &region, &root);
  CHECK(region.taken_bytes <= text.n * TAKEN_TIMES + TAKEN_MORE);
  if (err != ERR_OK) {
    CHECK(err == ERR_QUERY && root == NULL);
    CHECK(strncmp(err_message(), "filter: ", 8) == 0 && strlen(err_message()) < 512);
    CHECK(utf8_is_valid(span_of_str(err_message())));
    return;
  }
  (void)filter_matches(root, absent);
  if (root->kind != FILTER_ALL && root->kind != FILTER_NONE) {
    CHECK(check_tree(root, 1) <= FILTER_NODES_MAX);
    check_print(root, &attributes);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const struct value texts[] = { { VALUE_TEXT, .text = { (const uint8_t *)"de", 2 } },
                                        { VALUE_TEXT, .text = { (const uint8_t *)"\xff", 1 } },
                                        { .kind = VALUE_NULL } };
  static const struct value numbers[] = { { VALUE_INTEGER, .integer = INT64_MAX }, { VALUE_NUMBER, .number = -0.5 } };
  static const struct value parameters[] = { { VALUE_LIST, .list = { texts, 1 } },
                                             { VALUE_LIST, .list = { numbers, 2 } },
                                             { VALUE_LIST, .list = { texts, 3 } } };
  struct span text = span_of(data, size);

  check_filter(text, NULL, 0);
  for (size_t i = 0; i < 3; i++)
    check_filter(text, &parameters[i], 1);
  check_filter(text, numbers, 2);
  return 0;
}

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

enum { FILTER_BYTES_MAX = 20000 };

/* Pieces that random bytes would seldom form. */
static const char *const words[] = {
  " and ", " or ", " not ", "not ", "(", ")", "has(", "has ", " in ", " in (", " between ", "true", "'", "''", ",",
  "$1", "$2", "$64", "$65", "$0", "= ", "!= ", "<= ", "> ", "==", "-", "1e400", "1e-400", "9223372036854775807",
  "9007199254740993", "-9223372036854775808", "1.5", "0.1", "'1970-01-01T00:00:00Z'", "'1969-12-31T00:00:00.5+01:00'",
  "available", "adult", "country ", "tags has ", "year ", "price ", "expires ", "\xc3\xbc", "\xff", "\xe2\x82", "\n",
  "_", "e", ".",
};

static size_t insert(uint8_t *text, size_t n, size_t at, const void *piece, size_t length)
{
  if (n + length > FILTER_BYTES_MAX)
    return n;
  memmove(text + at + length, text + at, n - at);
  memcpy(text + at, piece, length);
  return n + length;
}

static size_t change(struct dice *d, uint8_t *text, size_t n)
{
  size_t at = dice_below(d, n + 1), length = dice_below(d, n - at + 1);
  uint8_t copy[64];

  switch (dice_below(d, 6)) {
  case 0: /* replace a byte */
    if (at < n)
      text[at] = (uint8_t)dice_u64(d);
    return n;
  case 1: /* cut the end off */
    return at;
  case 2: /* remove bytes */
    memmove(text + at, text + at + length, n - at - length);
    return n - length;
  case 3: /* repeat a piece, perhaps many times */
    length = length < sizeof copy ? length : sizeof copy;
    memcpy(copy, text + at, length);
    for (size_t times = dice_below(d, 4) ? 1 : dice_below(d, 400); times > 0; times--)
      n = insert(text, n, at, copy, length);
    return n;
  default: { /* insert a word, perhaps many times */
    const char *word = words[dice_below(d, sizeof words / sizeof words[0])];
    for (size_t times = dice_below(d, 8) ? 1 : dice_below(d, 2000); times > 0; times--)
      n = insert(text, n, at, word, strlen(word));
    return n;
  }
  }
}

static void fuzz_random(long rounds)
{
  static struct draw draw;
  static uint8_t text[FILTER_BYTES_MAX];
  struct dice d = { dice_seed() };

  draw.dice = &d;
  for (long round = 0; round < rounds; round++) {
    draw_filter(&draw, 1 + dice_below(&d, 8));
    size_t n = draw.n_text;
    memcpy(text, draw.text, n);
    for (size_t changes = dice_below(&d, 5); changes > 0; changes--)
      n = change(&d, text, n);
    fuzz_run(text, n);
  }
  printf("%ld inputs\n", rounds);
}

#endif
