/* SPDX-License-Identifier: Apache-2.0 */
/* Draw the progress bar, or print lines if standard error is no terminal. */
#include "daemon/ctl/text/ctl_progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/ctl/text/ctl_format.h"

enum { BAR_CELLS = 24, LINE_BYTES = 256, TERMINAL_PERIOD_MS = 100, PLAIN_PERIOD_MS = 5000 };

void ctl_progress_begin(struct ctl_progress *p, const char *label, uint64_t total)
{
  int64_t now_ns = clock_now_ns();

  *p = (struct ctl_progress){
    .label = label,
    .total = total,
    .is_terminal = isatty(STDERR_FILENO),
    .started_ns = now_ns,
    .shown_ns = now_ns,
  };
}

static void print_bar(double share, char *out)
{
  int n_full = (int)(share * BAR_CELLS);

  memset(out, ' ', BAR_CELLS);
  memset(out, '#', (size_t)n_full);
  out[BAR_CELLS] = '\0';
}

void ctl_progress_print(const struct ctl_progress *p, uint64_t done, uint64_t n_items, int64_t elapsed_ns, char *out,
                        size_t size)
{
  char bar[BAR_CELLS + 1];
  char left[CTL_TEXT_BYTES + 16] = "";
  const char *unit = p->unit ? p->unit : "items";
  double share = p->total && done < p->total ? (double)done / (double)p->total : 1;

  if (p->total && done > 0)
    snprintf(left, sizeof left, "  %s left", ctl_format_span((int64_t)((double)elapsed_ns * (1 / share - 1))).s);
  print_bar(share, bar);
  if (p->total)
    snprintf(out, size, "%s [%s] %3.0f %%  %s %s  %s %s/s%s", p->label, bar, share * 100, ctl_format_count(n_items).s,
             unit, ctl_format_rate(n_items, elapsed_ns).s, unit, left);
  else
    snprintf(out, size, "%s  %s %s  %s %s/s", p->label, ctl_format_count(n_items).s, unit,
             ctl_format_rate(n_items, elapsed_ns).s, unit);
}

void ctl_progress_tick(struct ctl_progress *p, uint64_t done, uint64_t n_items)
{
  char line[LINE_BYTES];
  int64_t now_ns = clock_now_ns();
  int64_t period_ms = p->is_terminal ? TERMINAL_PERIOD_MS : PLAIN_PERIOD_MS;

  if (now_ns - p->shown_ns < period_ms * CLOCK_NS_PER_MS)
    return;
  p->shown_ns = now_ns;
  p->is_shown = p->is_terminal;
  ctl_progress_print(p, done, n_items, now_ns - p->started_ns, line, sizeof line);
  if (p->is_terminal)
    fprintf(stderr, "\r%s\033[K", line);
  else
    fprintf(stderr, "%s\n", line);
}

void ctl_progress_hide(struct ctl_progress *p)
{
  if (p->is_shown)
    fputs("\r\033[K", stderr);
  p->is_shown = false;
}
