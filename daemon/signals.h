/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as a descriptor that main reads: no work is done in a handler. Thread: main. */
#ifndef DAEMON_SIGNALS_H
#define DAEMON_SIGNALS_H

/* Block SIGTERM, SIGINT and SIGHUP in the calling thread and in those that it starts, ignore SIGPIPE, and return a
 * descriptor that is readable when one of the three has come; -1 on error. */
int signals_open(void);

/* The signal that has come; 0: none. Blocks: until one comes. */
int signals_next(int fd);

#endif
