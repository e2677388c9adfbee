/* SPDX-License-Identifier: Apache-2.0 */
/* An attribute's name has no colon, so a second one is that of the half-life. A filter may have more. */
#include "daemon/ctl/text/ctl_boosts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/ctl/text/ctl_option.h"

/* Read "WEIGHT:". Returns what is behind it; NULL: there is no weight, or nothing behind it. */
static const char *read_weight(const char *text, double *weight)
{
  char *end;

  *weight = strtod(text, &end);
  return end > text && end[0] == ':' && end[1] ? end + 1 : NULL;
}

static err_t add(struct ctl_boosts *b, const char *text, const struct boost *boost)
{
  if (!isfinite(boost->weight) || fabs(boost->weight) > QUERY_BOOST_WEIGHT_MAX)
    FAIL(ERR_USAGE, "%s: a weight is from %g to %g", text, -QUERY_BOOST_WEIGHT_MAX, QUERY_BOOST_WEIGHT_MAX);
  if (b->n == QUERY_BOOSTS_MAX)
    FAIL(ERR_USAGE, "--boost and --boost-if: more than %d boosts", QUERY_BOOSTS_MAX);
  b->texts[b->n] = text;
  b->v[b->n++] = *boost;
  return ERR_OK;
}

err_t ctl_boosts_take(void *boosts, const char *text)
{
  struct boost boost = { 0 };
  const char *name = read_weight(text, &boost.weight);
  size_t n = name ? strcspn(name, ":") : 0;

  if (n == 0)
    FAIL(ERR_USAGE,
         "--boost expects a weight, an attribute and, of a time, its half-life, such as 0.2:popularity or "
         "0.5:published:7d, not %s",
         log_quote(span_of_str(text)));
  if (name[n] && (!ctl_option_read_span(name + n + 1, &boost.half_life_ms) || boost.half_life_ms == 0))
    FAIL(ERR_USAGE, "--boost %s: a half-life is a number with a unit, such as 90s, 15m, 6h or 7d, not %s", text,
         log_quote(span_of_str(name + n + 1)));
  boost.attribute = span_of(name, n);
  return add(boosts, text, &boost);
}

err_t ctl_boosts_take_if(void *boosts, const char *text)
{
  struct boost boost = { 0 };
  const char *filter = read_weight(text, &boost.weight);

  if (!filter)
    FAIL(ERR_USAGE, "--boost-if expects a weight and a filter, such as \"0.3:section = 'graphics'\", not %s",
         log_quote(span_of_str(text)));
  boost.filter = span_of_str(filter);
  return add(boosts, text, &boost);
}

err_t ctl_boosts_take_now(void *boosts, const char *text)
{
  struct ctl_boosts *b = boosts;
  uint64_t ms;

  if (*text && text[strspn(text, "0123456789")] == '\0') {
    TRY(ctl_option_number("--now", text, 0, INT64_MAX, &ms));
    b->now_unix_ms = (int64_t)ms;
  } else {
    TRY(ctl_option_time("--now", text, clock_unix_ms(), &b->now_unix_ms));
  }
  if (b->now_unix_ms < 0)
    FAIL(ERR_USAGE, "--now: %s is before 1970", text);
  b->has_now = true;
  return ERR_OK;
}
