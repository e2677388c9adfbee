/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of all types, for tests of filters. */
#ifndef TESTS_SUPPORT_FILTER_ATTRIBUTES_H
#define TESTS_SUPPORT_FILTER_ATTRIBUTES_H

#include "base/value.h"

enum { AVAILABLE, ADULT, COUNTRY, TAGS, YEAR, PRICE, EXPIRES, N_FILTER_ATTRIBUTES };

static inline struct attributes filter_attributes(void)
{
#define ATTRIBUTE(name, type) { { (const uint8_t *)(name), sizeof(name) - 1 }, (type) }
  static const struct attribute list[N_FILTER_ATTRIBUTES] = {
    [AVAILABLE] = ATTRIBUTE("available", ATTRIBUTE_BOOL), [ADULT] = ATTRIBUTE("adult", ATTRIBUTE_BOOL),
    [COUNTRY] = ATTRIBUTE("country", ATTRIBUTE_KEYWORD),  [TAGS] = ATTRIBUTE("tags", ATTRIBUTE_KEYWORDS),
    [YEAR] = ATTRIBUTE("year", ATTRIBUTE_INTEGER),        [PRICE] = ATTRIBUTE("price", ATTRIBUTE_NUMBER),
    [EXPIRES] = ATTRIBUTE("expires", ATTRIBUTE_TIME),
  };
#undef ATTRIBUTE

  return (struct attributes){ list, N_FILTER_ATTRIBUTES };
}

#endif
