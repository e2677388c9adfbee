/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of each type, and random filters over them, as texts. */
#ifndef TESTS_SUPPORT_FILTER_CLAUSES_H
#define TESTS_SUPPORT_FILTER_CLAUSES_H

#include <stdio.h>

#include "base/item.h"
#include "tests/support/dice.h"

#define FIRST_MS INT64_C(1790000000000)

enum { COUNTRY, TAG_SET, PRICE, YEAR, AVAILABLE, EXPIRES, NOT_BEFORE, N_ATTRIBUTES };

static const struct attribute attributes[N_ATTRIBUTES] = {
  [COUNTRY] = { { (const uint8_t *)"country", 7 }, ATTRIBUTE_KEYWORD },
  [TAG_SET] = { { (const uint8_t *)"tags", 4 }, ATTRIBUTE_KEYWORDS },
  [PRICE] = { { (const uint8_t *)"price", 5 }, ATTRIBUTE_NUMBER },
  [YEAR] = { { (const uint8_t *)"year", 4 }, ATTRIBUTE_INTEGER },
  [AVAILABLE] = { { (const uint8_t *)"available", 9 }, ATTRIBUTE_BOOL },
  [EXPIRES] = { { (const uint8_t *)"expires", 7 }, ATTRIBUTE_TIME },
  [NOT_BEFORE] = { { (const uint8_t *)"not_before", 10 }, ATTRIBUTE_TIME },
};

static const char *const countries[] = { "at", "be", "ch", "de", "es", "fr" };
static const char *const tags[] = { "adult", "kids", "new", "sale", "used" };

static inline void draw_clause(struct dice *dice, char *text, size_t size)
{
  const char *country = countries[dice_below(dice, 6)], *tag = tags[dice_below(dice, 5)];
  int year = 1950 + (int)dice_below(dice, 80), price = (int)dice_below(dice, 100);

  switch (dice_below(dice, 11)) {
  case 0:
    snprintf(text, size, "country = '%s'", country);
    break;
  case 1:
    snprintf(text, size, "country != '%s'", country);
    break;
  case 2:
    snprintf(text, size, "country in ('%s', 'de', 'xx')", country);
    break;
  case 3:
    snprintf(text, size, "tags has '%s'", tag);
    break;
  case 4:
    snprintf(text, size, "price < %d.5", price);
    break;
  case 5:
    snprintf(text, size, "price between %d and %d", price / 2, price);
    break;
  case 6:
    snprintf(text, size, "year >= %d", year);
    break;
  case 7:
    snprintf(text, size, "year in (%d, %d, 1999)", year, year + 1);
    break;
  case 8:
    snprintf(text, size, "available");
    break;
  case 9:
    snprintf(text, size, "has(%.*s)", (int)attributes[year % N_ATTRIBUTES].name.n,
             attributes[year % N_ATTRIBUTES].name.p);
    break;
  default:
    snprintf(text, size, "expires > %lld", (long long)FIRST_MS + price * 10);
    break;
  }
}

enum { CLAUSE_BYTES = 64, FILTER_BYTES = 8 * CLAUSE_BYTES + 256 };

/* Draw one to four clauses, joined. */
static inline void draw_filter(struct dice *dice, char *text)
{
  char clauses[4][CLAUSE_BYTES];
  size_t n = 1 + dice_below(dice, 4);

  for (size_t i = 0; i < 4; i++)
    draw_clause(dice, clauses[i], CLAUSE_BYTES);
  if (n == 1)
    snprintf(text, FILTER_BYTES, "%s", clauses[0]);
  else if (n == 2)
    snprintf(text, FILTER_BYTES, "%s %s %s", clauses[0], dice_below(dice, 2) ? "and" : "or", clauses[1]);
  else if (n == 3)
    snprintf(text, FILTER_BYTES, "not (%s and %s) and %s", clauses[0], clauses[1], clauses[2]);
  else
    snprintf(text, FILTER_BYTES, "(%s or %s) and not (%s or %s)", clauses[0], clauses[1], clauses[2], clauses[3]);
}

#endif
