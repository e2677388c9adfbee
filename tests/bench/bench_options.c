/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the options of a benchmark, its temporary folder, and how it fails. */
#include "tests/bench/bench_options.h"

#include <dirent.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static size_t n_failures;

void bench_check(err_code_t code)
{
  if (code != ERR_OK) {
    fprintf(stderr, "bench: error: %s\n", err_message());
    exit(1);
  }
}

void bench_fail(const char *format, ...)
{
  va_list args;

  fprintf(stderr, "bench: WRONG RESULT: ");
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\n");
  n_failures++;
}

void bench_progress(const char *what, size_t done, size_t total)
{
  bool is_over = done >= total;

  if (isatty(STDERR_FILENO))
    fprintf(stderr, "\rbench: %s: %zu of %zu%s", what, done, total, is_over ? "\n" : "");
  else if (is_over)
    fprintf(stderr, "bench: %s: %zu\n", what, total);
}

const char *bench_path(const struct bench_options *options, const char *name)
{
  static char path[320];

  snprintf(path, sizeof path, "%s/%s", options->dir, name);
  return path;
}

static void refuse(const char *argument)
{
  fprintf(stderr,
          "bench: error: argument '%s' cannot be used\n"
          "usage: bench_NAME [--items N] [--threads N] [--k N] [--seconds S] [--methods M...] [--json | --markdown] [--peers "
          "FOLDER]\n",
          argument);
  exit(2);
}

static double number(const char *text, double least)
{
  char *end;
  double value = text ? strtod(text, &end) : 0;

  if (!text || *end || !(value >= least))
    refuse(text ? text : "");
  return value;
}

static double number_within(const char *text, double least, double most)
{
  double value = number(text, least);

  if (value > most)
    refuse(text);
  return value;
}

/* Read methods up to the next option. Return how many arguments were read. */
static int read_methods(char **argv, struct bench_options *out)
{
  int n = 0;

  out->n_methods = 0;
  while (argv[n] && strncmp(argv[n], "--", 2) != 0) {
    if (out->n_methods == BENCH_METHODS_MAX)
      refuse(argv[n]);
    out->methods[out->n_methods++] = argv[n++];
  }
  return n;
}

static void read_line(int argc, char **argv, struct bench_options *out)
{
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0)
      out->format = BENCH_JSON;
    else if (strcmp(argv[i], "--markdown") == 0)
      out->format = BENCH_MARKDOWN;
    else if (strcmp(argv[i], "--items") == 0)
      out->items = (size_t)number(argv[++i], 1000);
    else if (strcmp(argv[i], "--threads") == 0)
      out->threads = (size_t)number(argv[++i], 1);
    else if (strcmp(argv[i], "--k") == 0 && out->k > 0)
      out->k = (uint32_t)number_within(argv[++i], 1, BENCH_K_MAX - 1);
    else if (strcmp(argv[i], "--seconds") == 0)
      out->seconds = number(argv[++i], 0.001);
    else if (strcmp(argv[i], "--methods") == 0)
      i += read_methods(argv + i + 1, out);
    else if (strcmp(argv[i], "--peers") == 0 && argv[i + 1])
      out->peers = argv[++i];
    else
      refuse(argv[i]);
  }
}

void bench_begin(int argc, char **argv, const struct bench_options *defaults, struct bench_options *out)
{
  const char *seed = getenv("SLUICE_SEED");

  *out = *defaults;
  read_line(argc, argv, out);
  out->seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
  out->dice.state = out->seed;
  fprintf(stderr, "bench: %s, SLUICE_SEED=%llu\n", out->workload, (unsigned long long)out->seed);
  snprintf(out->dir, sizeof out->dir, "%s/sluice-bench-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  if (!mkdtemp(out->dir)) {
    perror(out->dir);
    exit(1);
  }
}

int bench_end(struct bench_options *options)
{
  DIR *dir = opendir(options->dir);

  for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
    if (entry->d_name[0] != '.')
      unlinkat(dirfd(dir), entry->d_name, 0);
  }
  if (dir)
    closedir(dir);
  rmdir(options->dir);
  if (n_failures)
    fprintf(stderr, "bench: error: %zu wrong results\n", n_failures);
  return n_failures > 0;
}
