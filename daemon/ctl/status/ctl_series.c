/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of values, and their heights. */
#include "daemon/ctl/status/ctl_series.h"

enum { HEIGHTS = 8 };

void ctl_series_add(struct ctl_series *s, double value)
{
  s->values[s->n_added++ % CTL_SERIES_MAX] = value;
}

static double value_at(const struct ctl_series *s, size_t i)
{
  return s->values[i % CTL_SERIES_MAX];
}

/* Return the height of a value, from 1 on; 0 for 0. */
static size_t height_of(double value, double largest)
{
  if (!(value > 0))
    return 0;
  size_t height = (size_t)(value / largest * HEIGHTS);
  return height < 1 ? 1 : height > HEIGHTS ? HEIGHTS : height;
}

void ctl_series_print(const struct ctl_series *s, size_t n, bool is_ascii, FILE *out)
{
  static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
  static const char *const ascii[] = { " ", "_", ".", "-", ":", "=", "+", "*", "#" };
  size_t n_kept = s->n_added < CTL_SERIES_MAX ? s->n_added : CTL_SERIES_MAX;
  double largest = 0;

  n = n < n_kept ? n : n_kept;
  for (size_t i = s->n_added - n; i < s->n_added; i++)
    largest = value_at(s, i) > largest ? value_at(s, i) : largest;
  for (size_t i = s->n_added - n; i < s->n_added; i++)
    fputs((is_ascii ? ascii : blocks)[height_of(value_at(s, i), largest)], out);
}
