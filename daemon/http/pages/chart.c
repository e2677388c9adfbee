/* SPDX-License-Identifier: Apache-2.0 */
/* Scale values and draw them as paths. The newest is at the right. */
#include "daemon/http/pages/chart.h"

#include <math.h>

#include "daemon/http/print/html_print.h"

enum { WIDTH = 480, HEIGHT = 90, TOP = 6, LEFT = 4 };

/* Return the line's value at a moment; NAN: there is none. */
static double value_of(const struct chart_line *line, const struct moment *moment)
{
  double value = *(const double *)(const void *)((const char *)moment + line->value);

  return line->is_absent_if_zero && value == 0 ? NAN : value;
}

/* Return 1, 2 or 5 times a power of ten, at least all values. */
static double scale_of(const struct chart *chart, const struct moment *moments, size_t n)
{
  static const double steps[] = { 1, 2, 5, 10 };
  double most = 0;

  for (size_t line = 0; line < chart->n_lines; line++) {
    for (size_t i = 0; i < n; i++)
      most = fmax(most, value_of(&chart->lines[line], &moments[i])); /* fmax() ignores NAN */
  }
  if (!(most > 0))
    return 1;
  double power = pow(10, floor(log10(most)));
  size_t step = 0;
  while (step < 3 && steps[step] * power < most)
    step++;
  return steps[step] * power;
}

static void print_path(FILE *out, const struct chart *chart, size_t line, const struct moment *moments, size_t n,
                       double scale)
{
  bool is_gap = true;

  fprintf(out, "<path class=\"line-%zu\" d=\"", line);
  for (size_t i = 0; i < n; i++) {
    double value = value_of(&chart->lines[line], &moments[i]);
    double x = LEFT + (double)(HISTORY_MAX - n + i) * (WIDTH - 2 * LEFT) / (HISTORY_MAX - 1);
    if (!isnan(value)) /* h0: a single moment between gaps is a dot */
      fprintf(out, "%c%.1f %.1f%s", is_gap ? 'M' : 'L', x, HEIGHT - value / scale * (HEIGHT - TOP), is_gap ? "h0" : "");
    is_gap = isnan(value);
  }
  fputs("\"/>", out);
}

static void print_caption(FILE *out, const struct chart *chart, const struct moment *newest)
{
  fprintf(out, "<figcaption><span>%s</span>", chart->title);
  for (size_t line = 0; newest && line < chart->n_lines; line++) {
    double value = value_of(&chart->lines[line], newest);
    fprintf(out, "<span class=\"now line-%zu\">%s%s", line, chart->lines[line].name,
            *chart->lines[line].name ? " " : "");
    if (isnan(value))
      fputs("-", out);
    else
      html_print_number(out, value);
    fputs("</span>", out);
  }
  fputs("</figcaption>", out);
}

void chart_print(FILE *out, const struct chart *chart, const struct moment *moments, size_t n)
{
  double scale = scale_of(chart, moments, n);

  fputs("<figure>", out);
  print_caption(out, chart, n ? &moments[n - 1] : NULL);
  fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", WIDTH,
          HEIGHT + TOP, chart->title);
  fprintf(out, "<path class=\"frame\" d=\"M0 %dH%dM0 %dH%d\"/>", TOP, WIDTH, HEIGHT, WIDTH);
  for (size_t line = 0; line < chart->n_lines; line++)
    print_path(out, chart, line, moments, n, scale);
  fputs("</svg><p class=\"scale\"><span>10 min ago</span><span>top: ", out);
  html_print_number(out, scale);
  fputs("</span><span>now</span></p></figure>\n", out);
}
