/* SPDX-License-Identifier: Apache-2.0 */
/* What the journal is told about an event besides its pairs: a fixed id and a sentence. systemd/sluice.catalog explains
 * each id to people. Every warning and error has a row; tests/rules/events checks it. */
#ifndef DAEMON_JOURNAL_JOURNAL_EVENTS_H
#define DAEMON_JOURNAL_JOURNAL_EVENTS_H

struct journal_event {
  const char *name;
  const char *message_id; /* 128 bits in hexadecimal; never changed, because people and programs search for it */
  const char *sentence;
};

/* Find an event by name. NULL: it has no row. */
const struct journal_event *journal_events_find(const char *name);

#endif
