/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a journal entry, made from a record of the log. */
#ifndef DAEMON_JOURNAL_JOURNAL_FIELDS_H
#define DAEMON_JOURNAL_JOURNAL_FIELDS_H

#include <sys/uio.h>

#include "base/log.h"

enum { JOURNAL_FIELDS_MAX = 32, JOURNAL_TEXT_BYTES = 8192 };

struct journal_fields {
  struct iovec field[JOURNAL_FIELDS_MAX]; /* point into `text` */
  int n;
  size_t n_text;
  char text[JOURNAL_TEXT_BYTES];
};

/* Make the fields: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, SLUICE_EVENT, MESSAGE_ID if the event has one, and SLUICE_KEY
 * for each pair, with its bytes as they were before they were quoted. MESSAGE is the event's sentence and the pairs.
 * Without a row in journal_events.c it is the line as it is written elsewhere. Fields that find no room are left out.
 */
void journal_fields_make(const struct log_record *record, struct journal_fields *out);

#endif
