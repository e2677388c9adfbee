/* SPDX-License-Identifier: Apache-2.0 */
/* A flag that a signal handler sets. */
#include "daemon/ctl/ctl_interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_bool has_come;

static void note(int signal)
{
  (void)signal;
  atomic_store(&has_come, true);
}

void ctl_interrupt_catch(void)
{
  /* SA_RESETHAND: the second signal has its usual effect. */
  const struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART | (int)SA_RESETHAND };

  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

bool ctl_interrupt_came(void)
{
  return atomic_load(&has_come);
}
