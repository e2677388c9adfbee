/* SPDX-License-Identifier: Apache-2.0 */
/* The log as entries of the journal, with fields that can be searched for. */
#ifndef DAEMON_JOURNAL_JOURNAL_H
#define DAEMON_JOURNAL_JOURNAL_H

/* If standard error is the journal's stream, send all further events to the journal itself. Otherwise do nothing: they
 * are lines on standard error. Thread: before there are others. */
void journal_begin(void);

#endif
