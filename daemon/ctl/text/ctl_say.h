/* SPDX-License-Identifier: Apache-2.0 */
/* How commands print messages to standard error. Thread: any. */
#ifndef DAEMON_CTL_CTL_SAY_H
#define DAEMON_CTL_CTL_SAY_H

/* Print "sluicectl: " and the message to standard error, as one line. */
void ctl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
