/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, read from a descriptor by main: no work is done in a signal handler. Thread: main. */
#ifndef DAEMON_SIGNALS_H
#define DAEMON_SIGNALS_H

/* Block SIGTERM, SIGINT and SIGHUP in the calling thread and the threads that it starts. Ignore SIGPIPE and SIGXFSZ: a
 * write fails instead. Returns a descriptor that is readable when one of the first three is pending; -1 on error. */
int signals_open(void);

/* Return the next signal; 0: none came within timeout_ms. */
int signals_next(int fd, int timeout_ms);

#endif
