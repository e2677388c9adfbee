/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench gpu: every method on a GPU, beside the peak rates of its memory, tensor cores, special functions and shared
 * memory, measured in the same run. In the environment, SLUICE_GPU_QUICK selects the sizes of a smoke test, and
 * SLUICE_BENCH_PROFILE one search of each method, without times, for a profiler. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/cores.h"
#include "tests/bench/gpu_race.h"
#ifdef HAVE_CUBLAS
#include "tests/bench/gpu_cublas.h"
#endif

static const size_t COPY_BYTES = (size_t)512 << 20, QUICK_COPY_BYTES = (size_t)1 << 20;

enum { LOOPS = 20000, QUICK_LOOPS = 2, MATRIX = 8192, ROWS_MAX = GPU_CASES_MAX };

static void open_device(struct gpu_bench *b)
{
  if (device_find(&b->device) != ERR_OK) {
    fprintf(stderr, "bench: error: %s\n", err_message());
    exit(77);
  }
  b->is_quick = getenv("SLUICE_GPU_QUICK");
  b->is_profiled = getenv("SLUICE_BENCH_PROFILE");
  bench_check(
      gpu_ceilings_open(b->is_quick ? QUICK_COPY_BYTES : COPY_BYTES, b->is_quick ? QUICK_LOOPS : LOOPS, &b->ceilings));
  bench_check(device_timer_open(&b->timer));
}

static void report_ceilings(struct gpu_bench *b)
{
  const char *end = b->options.format == BENCH_MARKDOWN ? "\n\n" : "\n";
  double copy, read;

  report_begin(&b->options, "Searches on a GPU");
  if (b->options.format != BENCH_JSON)
    printf("%sGPU: %s, %d multiprocessors, compute capability %d.%d, %.0f GiB%s", end, b->device.name,
           b->device.n_processors, b->device.compute_capability / 10, b->device.compute_capability % 10,
           (double)b->device.memory_bytes / (1 << 30), end);
  bench_check(gpu_ceilings_copy_rate(b->ceilings, &copy));
  report_limit(&b->options, "gpu_copy_gb_per_s", "copying 512 MiB, read and written", copy, "GB/s");
  bench_check(gpu_ceilings_read_rate(b->ceilings, &read));
  report_limit(&b->options, "gpu_read_gb_per_s", "reading 512 MiB", read, "GB/s");
  b->limits.memory = copy > read ? copy : read;
  bench_check(gpu_ceilings_mma_rate(b->ceilings, &b->limits.flops));
  report_limit(&b->options, "gpu_mma_tflop_per_s", "f16 products by mma.sync", b->limits.flops / 1e3, "TFLOP/s");
#ifdef HAVE_CUBLAS
  double cublas = b->is_quick ? 0 : gpu_cublas_rate(MATRIX);
  report_limit(&b->options, "gpu_cublas_tflop_per_s", "f16 matrix product of cuBLAS, 8192 x 8192 x 8192", cublas / 1e3,
               "TFLOP/s");
  b->limits.flops = cublas > b->limits.flops ? cublas : b->limits.flops;
#endif
  bench_check(gpu_ceilings_tanh_rate(b->ceilings, &b->limits.tanh));
  report_limit(&b->options, "gpu_tanh_per_ns", "tanh in f32", b->limits.tanh, "a nanosecond");
  bench_check(gpu_ceilings_exp2_rate(b->ceilings, &b->limits.exp2));
  report_limit(&b->options, "gpu_exp2_per_ns", "exp2 in f32", b->limits.exp2, "a nanosecond");
  bench_check(gpu_ceilings_shared_rate(b->ceilings, &b->limits.shared));
  report_limit(&b->options, "gpu_shared_words_per_ns", "words from shared memory", b->limits.shared, "a nanosecond");
}

static void open_engine(struct gpu_bench *b, enum engine_backend backend, struct bench_engine *engine)
{
  struct gpu_subject *s = b->subject;

  bench_check(bench_engine_open_on(backend, s->model, b->options.items, engine));
  bench_check(bench_engine_share(cores_available(), engine)); /* as in the daemon */
  bench_engine_fill(engine, b->options.items, s->part_of, s->data);
}

/* Wait until no other program measures, and keep the turn until the end. Without SLUICE_BENCH_TURN, a file that is
 * locked while one measures, there is nothing to wait for. */
static void take_turn(struct gpu_bench *b)
{
  const char *path = getenv("SLUICE_BENCH_TURN");

  if (b->is_turn)
    return;
  b->is_turn = true;
  if (path) {
    fprintf(stderr, "bench: waits for its turn\n");
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || flock(file, LOCK_EX) != 0) { /* closed by exit */
      fprintf(stderr, "bench: error: cannot lock %s\n", path);
      exit(1);
    }
  }
  report_ceilings(b);
}

static void race_subject(struct gpu_bench *b)
{
  struct gpu_subject *s = b->subject;
  struct bench_row rows[ROWS_MAX];
  size_t n = 0;

  s->open(s, &b->options);
  open_engine(b, ENGINE_CUDA, &b->cuda);
  open_engine(b, ENGINE_CPU, &b->cpu);
  take_turn(b);
  if (b->options.format != BENCH_JSON)
    printf("\n%s, %zu items\n", s->title, b->options.items);
  for (size_t i = 0; i < s->n_cases; i++) {
    if (gpu_bench_wants(b, s->cases[i].name))
      n += gpu_race_run(b, &s->cases[i], &rows[n]);
  }
  if (n > 0)
    report_rows(&b->options, rows, n);
  if (s->live_method && !b->is_profiled && gpu_bench_wants(b, "live")) {
    n = gpu_live_race_run(b, rows);
    if (n > 0 && b->options.format != BENCH_JSON)
      printf("\nwhile 1,000,000 updates a second are asked for (items/s: reached; target: p99 at most 1.2 of idle)\n");
    if (n > 0)
      report_rows(&b->options, rows, n);
  }
  bench_engine_close(&b->cuda);
  bench_engine_close(&b->cpu);
  s->close(s);
}

static bool wants_subject(const struct gpu_bench *b, const struct gpu_subject *s)
{
  bool is_wanted = s->live_method && gpu_bench_wants(b, "live");

  for (size_t i = 0; i < s->n_cases; i++)
    is_wanted |= gpu_bench_wants(b, s->cases[i].name);
  return is_wanted;
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = { .workload = "gpu", .seconds = 3 };
  static struct gpu_bench b;
  size_t n_subjects;
  struct gpu_subject *subjects = gpu_subjects(&n_subjects);

  bench_begin(argc, argv, &defaults, &b.options);
  size_t items = b.options.items;
  open_device(&b);
  for (size_t i = 0; i < n_subjects; i++) {
    b.subject = &subjects[i];
    b.options.items = items ? items : b.subject->default_items;
    if (wants_subject(&b, b.subject))
      race_subject(&b);
  }
  device_timer_close(&b.timer);
  gpu_ceilings_close(&b.ceilings);
  return bench_end(&b.options);
}
