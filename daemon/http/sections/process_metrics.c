/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, processor time and open files of this process, as the kernel counts them. */
#include "daemon/http/sections/process_metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/http/print/metric_print.h"

uint64_t process_resident_bytes(void)
{
  FILE *file = fopen("/proc/self/statm", "re");
  uint64_t pages = 0;

  if (!file)
    return 0;
  if (fscanf(file, "%*u %" SCNu64, &pages) != 1)
    pages = 0;
  fclose(file);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double seconds_of(const struct timeval *t)
{
  return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static double processor_seconds(void)
{
  struct rusage used;

  if (getrusage(RUSAGE_SELF, &used) != 0)
    return 0;
  return seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime);
}

/* The folder itself is open while its entries are counted. */
static uint64_t open_files(void)
{
  DIR *folder = opendir("/proc/self/fd");
  const struct dirent *entry;
  uint64_t n = 0;

  if (!folder)
    return 0;
  while ((entry = readdir(folder)))
    n += entry->d_name[0] != '.';
  closedir(folder);
  return n ? n - 1 : 0;
}

void process_metrics_print(FILE *out)
{
  static const char seconds[] = "process_cpu_seconds_total";
  struct rlimit limit;

  metric_print_gauge(out, "process_resident_memory_bytes", "Bytes of memory in RAM, pages of the mapped store included",
                     process_resident_bytes());
  metric_print_head(out, seconds, "counter", "Seconds of processor time, in user and system mode");
  metric_print_real(out, seconds, NULL, processor_seconds());
  metric_print_gauge(out, "process_open_fds", "Open file descriptors", open_files());
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    metric_print_gauge(out, "process_max_fds", "Most file descriptors that may be open", limit.rlim_cur);
}
