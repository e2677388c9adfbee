/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static pthread_t main_thread;

/* A library may start threads before main() does anything (OpenBLAS does), and these do not have main's mask: the
 * kernel may give them a signal of the process. They pass it on. */
static void pass_to_main(int signal)
{
  pthread_kill(main_thread, signal);
}

int signals_open(void)
{
  static const int handled[] = { SIGTERM, SIGINT, SIGHUP };
  struct sigaction pass = { .sa_handler = pass_to_main, .sa_flags = SA_RESTART };
  sigset_t set;

  main_thread = pthread_self();
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++) {
    sigaction(handled[i], &pass, NULL);
    sigaddset(&set, handled[i]);
  }
  signal(SIGPIPE, SIG_IGN);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC);
}

int signals_next(int fd)
{
  struct signalfd_siginfo signal;

  return read(fd, &signal, sizeof signal) == (ssize_t)sizeof signal ? (int)signal.ssi_signo : 0;
}
