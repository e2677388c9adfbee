/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of shape_check.h and their messages. */
#include "engine/model/shape_check.h"

#include <stdio.h>

#include "base/log.h"

err_t shape_check_floats(err_code_t code, const char *where, const char *field, struct floats given, size_t n)
{
  if (given.n == 0)
    FAIL(code, "%s: %s is missing: %zu numbers are needed", where, field, n);
  if (given.n != n)
    FAIL(code, "%s: %s has %zu numbers where the model needs %zu", where, field, given.n, n);
  for (size_t i = 0; i < n; i++) {
    if (!(given.v[i] >= -SHAPE_CHECK_NUMBER_MAX && given.v[i] <= SHAPE_CHECK_NUMBER_MAX))
      FAIL(code, "%s: %s: number %zu is %.9g, beyond +-%g", where, field, i, (double)given.v[i],
           (double)SHAPE_CHECK_NUMBER_MAX);
  }
  return ERR_OK;
}

err_t shape_check_absent(err_code_t code, const char *where, const char *field, size_t n_given)
{
  if (n_given)
    FAIL(code, "%s: %s is given, but this space does not use it together with the other fields", where, field);
  return ERR_OK;
}

const char *shape_check_part_name(const struct part *part)
{
  static _Thread_local char text[4 * SPACE_NAME_MAX + 32], space[SPACE_NAME_MAX];
  static _Thread_local size_t n;

  if (n > 0 && span_equal(part->space, span_of(space, n)))
    return text; /* nearly all parts are of the same few spaces, and the name is needed only for an error */
  n = part->space.n <= sizeof space ? part->space.n : 0;
  memcpy(space, part->space.p, n);
  snprintf(text, sizeof text, "part %s", log_quote(part->space));
  return text;
}
