/* SPDX-License-Identifier: Apache-2.0 */
/* Block signals and read them from a signalfd. */
#include "daemon/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static pthread_t main_thread;

/* Some libraries start threads before main() runs, OpenBLAS for one. These threads do not block the signals, so the
 * kernel may deliver one to them. This handler passes it to main. */
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
  signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit on the size of files fails with EFBIG */
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC);
}

int signals_next(int fd, int timeout_ms)
{
  struct signalfd_siginfo signal;
  struct pollfd p = { .fd = fd, .events = POLLIN };

  if (poll(&p, 1, timeout_ms) <= 0)
    return 0;
  return read(fd, &signal, sizeof signal) == (ssize_t)sizeof signal ? (int)signal.ssi_signo : 0;
}
