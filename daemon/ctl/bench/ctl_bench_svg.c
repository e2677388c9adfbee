/* SPDX-License-Identifier: Apache-2.0 */
/* Print an SVG of bars and lines. */
#include "daemon/ctl/bench/ctl_bench_svg.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "daemon/ctl/text/ctl_format.h"

enum { WIDTH = 720, HEIGHT = 320, LEFT = 40, TOP = 90, BOTTOM = 40, NAME_STEP = 16, LABEL_BINS = 4 };

/* Return the place of a latency on the axis. */
static double x_of(const struct ctl_bench_histogram *h, double ns)
{
  double bins = log(fmax(ns, h->least_ns) / h->least_ns) / log(h->factor);

  return LEFT + bins / (double)h->n_bins * (WIDTH - 2 * LEFT);
}

static double end_of(const struct ctl_bench_histogram *h, size_t bin)
{
  return h->least_ns * pow(h->factor, (double)bin);
}

static void draw_bars(const struct ctl_bench_histogram *h, FILE *out)
{
  uint64_t most = 1;

  for (size_t i = 0; i < h->n_bins; i++)
    most = h->counts[i] > most ? h->counts[i] : most;
  for (size_t i = 0; i < h->n_bins; i++) {
    double x = x_of(h, end_of(h, i)), height = (double)h->counts[i] / (double)most * (HEIGHT - TOP - BOTTOM);
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#4477aa\"><title>%s to %s: "
            "%s</title></rect>\n",
            x, HEIGHT - BOTTOM - height, x_of(h, end_of(h, i + 1)) - x - 1, height,
            ctl_format_span((int64_t)end_of(h, i)).s, ctl_format_span((int64_t)end_of(h, i + 1)).s,
            ctl_format_count(h->counts[i]).s);
  }
}

static void draw_axis(const struct ctl_bench_histogram *h, FILE *out)
{
  fprintf(out, "<path d=\"M%d %dH%d\" stroke=\"#333\"/>\n", LEFT, HEIGHT - BOTTOM, WIDTH - LEFT);
  for (size_t i = 0; i <= h->n_bins; i += LABEL_BINS)
    fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x_of(h, end_of(h, i)),
            HEIGHT - BOTTOM + NAME_STEP, ctl_format_span((int64_t)end_of(h, i)).s);
}

static void draw_percentiles(const struct ctl_bench_report *report, FILE *out)
{
  for (size_t i = 0; i < CTL_BENCH_PERCENTILES; i++) {
    double x = x_of(&report->histogram, (double)report->latency_ns[i]);
    int y = TOP - (CTL_BENCH_PERCENTILES - (int)i) * NAME_STEP + 4;
    bool is_right = x > WIDTH * 2.0 / 3;
    fprintf(out, "<path d=\"M%.1f %dV%d\" stroke=\"#cc3311\" stroke-dasharray=\"3 3\"/>\n", x, y, HEIGHT - BOTTOM);
    fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s %s</text>\n", is_right ? x - 4 : x + 4, y + 4,
            is_right ? "end" : "start", ctl_bench_percentiles[i].name, ctl_format_span(report->latency_ns[i]).s);
  }
}

static void draw(const struct ctl_bench_report *report, FILE *out)
{
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<title>Latency of %s answers</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
          WIDTH, HEIGHT, ctl_format_count(report->n_answered).s, WIDTH, HEIGHT);
  if (report->histogram.n_bins > 0) {
    draw_bars(&report->histogram, out);
    draw_axis(&report->histogram, out);
    draw_percentiles(report, out);
  }
  fputs("</svg>\n", out);
}

static err_t refuse(const char *path)
{
  FAIL(ERR_SYSTEM, "--plot: %s cannot be written: %s", log_quote(span_of_str(path)), strerror(errno));
}

static err_t open_file(const char *path, const char *mode, FILE **out)
{
  *out = fopen(path, mode);
  return *out ? ERR_OK : refuse(path);
}

err_t ctl_bench_svg_verify(const char *path)
{
  struct stat status;
  bool exists = stat(path, &status) == 0;
  FILE *file;

  if (exists && !S_ISREG(status.st_mode)) /* whoever reads a pipe would see it end */
    return ERR_OK;
  TRY(open_file(path, "ae", &file));
  fclose(file);
  if (!exists)
    remove(path);
  return ERR_OK;
}

err_t ctl_bench_svg_write(const char *path, const struct ctl_bench_report *report)
{
  FILE *file;

  TRY(open_file(path, "we", &file));
  draw(report, file);
  return fclose(file) == 0 ? ERR_OK : refuse(path);
}
