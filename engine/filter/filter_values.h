/* SPDX-License-Identifier: Apache-2.0 */
/* The values on the right side of an operator: checked against the attribute's type, and brought to its form. */
#ifndef ENGINE_FILTER_FILTER_VALUES_H
#define ENGINE_FILTER_FILTER_VALUES_H

#include "base/err.h"
#include "base/value.h"

/* Where a value stands. */
struct filter_place {
  size_t offset;    /* byte of the text */
  size_t parameter; /* from 1; 0: a literal */
};

/* The values of one comparison. */
struct filter_values {
  struct span text; /* the whole filter */
  const struct attribute *attribute;
  const struct value *v;
  const struct filter_place *places; /* [n]; of a parameter that is a list: one for all */
  size_t n;
  bool is_parameter_list;
};

/* A value on the line of integers: an integer, or between two. Doubles and fractions of a millisecond are placed
 * exactly. */
struct filter_point {
  __int128 floor;  /* beyond 64 bits: the value is beyond all integers of 64 bits */
  bool is_between; /* the value is between floor and floor + 1 */
};

/* Each of these checks the value with index i and converts it. They return ERR_OK; or ERR_QUERY, such as "price is a
 * number, and 'cheap' is text". */

/* For ATTRIBUTE_BOOL. */
err_t filter_values_bool(const struct filter_values *values, size_t i, bool *out);

/* For ATTRIBUTE_KEYWORD and ATTRIBUTE_KEYWORDS: borrows the text. */
err_t filter_values_text(const struct filter_values *values, size_t i, struct span *out);

/* For ATTRIBUTE_INTEGER and ATTRIBUTE_TIME. A time is an integer, a decimal or text as RFC 3339 has it. */
err_t filter_values_point(const struct filter_values *values, size_t i, struct filter_point *out);

/* For ATTRIBUTE_NUMBER: finite, and not -0. An integer that a double cannot hold is refused. */
err_t filter_values_number(const struct filter_values *values, size_t i, double *out);

/* Return "a number" or the like: what an attribute of the type is. */
const char *filter_values_type(enum attribute_type type);

#endif
