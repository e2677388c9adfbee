/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl watch: show what the daemon is doing, again and again, from its /status page. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/status/ctl_series.h"

enum { INTERVAL_S = 1, INTERVAL_S_MAX = 3600, COLUMNS = 80, LABEL_COLUMNS = 14, VALUE_COLUMNS = 11 };

/* What a row shows. */
enum row_kind {
  ROW_RATE,   /* of a counter, per second */
  ROW_LAG,    /* records of the catalogue topic that are not applied */
  ROW_LAG_S,  /* age of the oldest of them */
  ROW_LATENCY /* a quantile of the last one to two minutes */
};

static const struct row {
  const char *label;
  enum row_kind kind;
  const char *name;     /* of the counter, or of the latency */
  const char *quantile; /* of a latency */
} rows[] = {
  { "queries/s", ROW_RATE, "queries", NULL },
  { "answers/s", ROW_RATE, "answers", NULL },
  { "errors/s", ROW_RATE, "errors", NULL },
  { "updates/s", ROW_RATE, "applied", NULL },
  { "dead letters/s", ROW_RATE, "dead_letters", NULL },
  { "lag, records", ROW_LAG, NULL, NULL },
  { "lag, time", ROW_LAG_S, NULL, NULL },
  { "answer p50", ROW_LATENCY, "answer", "p50" },
  { "answer p99", ROW_LATENCY, "answer", "p99" },
  { "search p50", ROW_LATENCY, "search", "p50" },
  { "search p99", ROW_LATENCY, "search", "p99" },
  { "visible p99", ROW_LATENCY, "visible", "p99" },
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

struct watch {
  struct ctl_context *ctx;
  uint64_t interval_s;
  bool is_once;
  bool is_terminal;
  bool is_ascii;
  uint64_t before[N_ROWS]; /* counters */
  int64_t before_ns;       /* when they were read; 0: they were not */
  struct ctl_series series[N_ROWS];
};

static void watch_fini(struct watch *w)
{
  ctl_context_close(&w->ctx);
}

/* ---- Values ---- */

static double lag_of(const json_t *status, const char *name, bool is_sum)
{
  size_t i;
  json_t *row;
  double lag = 0;

  json_array_foreach(json_object_get(status, "catalogue_log"), i, row)
  {
    double value = json_number_value(json_object_get(row, name));
    lag = is_sum ? lag + value : value > lag ? value : lag;
  }
  return lag;
}

/* Return the value of a row: a rate, a number, or nanoseconds. */
static double value_of(struct watch *w, size_t i, const json_t *status, int64_t passed_ns)
{
  const struct row *row = &rows[i];
  uint64_t count;

  switch (row->kind) {
  case ROW_LAG:
    return lag_of(status, "lag", true);
  case ROW_LAG_S:
    return lag_of(status, "age_s", false) * (double)CLOCK_NS_PER_S;
  case ROW_LATENCY:
    count = ctl_json_count(json_object_get(json_object_get(status, "latency_us"), row->name), row->quantile);
    return (double)count * (double)CLOCK_NS_PER_US;
  case ROW_RATE:
    break;
  }
  count = ctl_json_count(json_object_get(status, "counters"), row->name);
  uint64_t n = count >= w->before[i] ? count - w->before[i] : 0; /* fewer: the daemon was started again */
  w->before[i] = count;
  return passed_ns > 0 ? (double)n * (double)CLOCK_NS_PER_S / (double)passed_ns : 0;
}

static struct ctl_text text_of(const struct row *row, double value)
{
  struct ctl_text text;

  if (row->kind == ROW_LATENCY || row->kind == ROW_LAG_S)
    return ctl_format_span((int64_t)value);
  if (value >= 10 || value == 0)
    return ctl_format_count((uint64_t)(value + 0.5));
  snprintf(text.s, sizeof text.s, "%.1f", value);
  return text;
}

/* ---- The page ---- */

static const char *word_of(const json_t *status, const char *name)
{
  const char *word = json_string_value(json_object_get(status, name));

  return word ? word : "?";
}

static void end_line(const struct watch *w)
{
  fputs(w->is_terminal ? "\033[K\n" : "\n", stdout); /* clear what a longer line has left */
}

static void print_head(const struct watch *w, const json_t *status, size_t n_columns)
{
  char line[512];
  bool is_ready = json_is_true(json_object_get(status, "ready"));
  double uptime_s = json_number_value(json_object_get(status, "uptime_s"));

  snprintf(line, sizeof line, "sluiced %s, up %s, %s items, epoch %s, %s MB", word_of(status, "version"),
           ctl_format_span((int64_t)(uptime_s * (double)CLOCK_NS_PER_S)).s,
           ctl_format_count(ctl_json_count(status, "items")).s, ctl_format_count(ctl_json_count(status, "epoch")).s,
           ctl_format_count(ctl_json_count(status, "memory_bytes") / 1000000).s);
  printf("%.*s", (int)n_columns, line);
  end_line(w);
  snprintf(line, sizeof line, "%s%s", is_ready ? "ready" : "NOT READY: ", is_ready ? "" : word_of(status, "not_ready"));
  printf("%.*s", (int)n_columns, line);
  end_line(w);
}

static size_t terminal_columns(void)
{
  struct winsize size;

  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS;
}

static void print_page(struct watch *w, const json_t *status, int64_t passed_ns)
{
  size_t n_columns = terminal_columns(), used = LABEL_COLUMNS + 1 + VALUE_COLUMNS + 2;

  if (w->is_terminal)
    fputs("\033[H", stdout); /* to the top left */
  print_head(w, status, n_columns);
  for (size_t i = 0; i < N_ROWS; i++) {
    double value = value_of(w, i, status, passed_ns);
    ctl_series_add(&w->series[i], value);
    printf("%-*s %*s  ", LABEL_COLUMNS, rows[i].label, VALUE_COLUMNS, text_of(&rows[i], value).s);
    ctl_series_print(&w->series[i], n_columns > used ? n_columns - used : 0, w->is_ascii, stdout);
    end_line(w);
  }
  if (w->is_terminal)
    fputs("\033[J", stdout); /* clear the rest */
  else if (!w->is_once)
    putchar('\n');
  fflush(stdout);
}

/* ---- The loop ---- */

static err_t look(struct watch *w)
{
  AUTO(ctl_json_close) json_t *status = NULL;
  bool is_first = w->before_ns == 0;

  TRY(http_get_status(w->ctx->http, &status));
  int64_t now_ns = clock_now_ns(), passed_ns = is_first ? 0 : now_ns - w->before_ns;
  w->before_ns = now_ns;
  if (!is_first) {
    print_page(w, status, passed_ns);
    return ERR_OK;
  }
  for (size_t i = 0; i < N_ROWS; i++)
    value_of(w, i, status, 0);
  return ERR_OK;
}

/* Once it has shown a page, it outlives restarts of the daemon. */
static err_t watch(struct watch *w)
{
  TRY(look(w));
  if (w->is_terminal)
    fputs("\033[2J", stdout);
  for (;;) {
    clock_sleep_ns((int64_t)w->interval_s * CLOCK_NS_PER_S);
    err_code_t err = look(w);
    if (w->is_once)
      return err;
    if (err != ERR_OK) {
      printf("%s%s", w->is_terminal ? "\033[H" : "", err_message());
      end_line(w);
      fflush(stdout);
    }
    if (ferror(stdout))
      FAIL(ERR_SYSTEM, "standard output is closed");
  }
}

static bool has_blocks(void)
{
  setlocale(LC_CTYPE, "");
  bool is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  setlocale(LC_CTYPE, "C");
  return is_utf8;
}

static err_t run_watch(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(watch_fini) struct watch w = { .interval_s = INTERVAL_S };
  const struct ctl_option known[] = {
    { "once", .is_given = &w.is_once },
    { "interval-s", .number = &w.interval_s, .min = 1, .max = INTERVAL_S_MAX },
    { 0 },
  };

  TRY(ctl_option_take_only(known, argc, argv));
  w.is_terminal = isatty(STDOUT_FILENO) && !w.is_once;
  w.is_ascii = !has_blocks();
  TRY(ctl_context_open_for_http(options, &w.ctx));
  return watch(&w);
}

const struct ctl_command ctl_watch_command = {
  .name = "watch",
  .arguments = "[--once] [--interval-s N]",
  .summary = "show rates, lag and latencies, again and again",
  .help = "  --once           look twice, print one page, and end: for scripts\n"
          "  --interval-s N   seconds between two pages (default: 1)\n"
          "\n"
          "Each row has the value now, and a chart of the last values: from 0 to the largest of them. Latencies are\n"
          "those of the last one to two minutes. End it with Ctrl-C.\n",
  .run = run_watch,
};
