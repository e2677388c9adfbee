/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the system for the cores that it lets this process run on. */
#include "base/cores.h"

#include <sched.h>
#include <unistd.h>

size_t cores_available(void)
{
  cpu_set_t cpus;

  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
    return CPU_COUNT(&cpus) > 0 ? (size_t)CPU_COUNT(&cpus) : 1;
  long n = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than the set has room for */
  return n > 0 ? (size_t)n : 1;
}
