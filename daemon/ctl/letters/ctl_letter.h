/* SPDX-License-Identifier: Apache-2.0 */
/* A dead letter: a record that the daemon could not use, with the headers that say why. docs/protocol.md has the
 * headers. Thread: any. */
#ifndef DAEMON_CTL_CTL_LETTER_H
#define DAEMON_CTL_CTL_LETTER_H

#include <jansson.h>

#include "daemon/config/config.h"
#include "ingest/readers/topic_scan.h"

/* It borrows its bytes from the record. */
struct ctl_letter {
  const struct topic_scan_record *record; /* of the dead-letter topic: key and value are those of the bad record */
  struct span topic;                      /* where the bad record was */
  int32_t partition;
  int64_t offset;
  struct span reason;
  struct span left_out; /* why key and value are missing; empty: they are not */
  struct span content_type;
  uint32_t n_retries; /* how often the bad record had been retried */
};

/* Read a letter. Returns false if the record has not the headers of one. */
bool ctl_letter_read(const struct topic_scan_record *record, struct ctl_letter *out);

/* Which letters a command is about. NULL: any. */
struct ctl_letter_filter {
  const char *topic;
  const char *reason; /* the reason has this text, in upper or lower case */
};
bool ctl_letter_matches(const struct ctl_letter *letter, const struct ctl_letter_filter *filter);

/* Describe a letter as JSON. The caller owns it; NULL: no memory.
 *
 * with_value  with the bad record's value: as a message if it is one, else as text, else as Base64
 */
json_t *ctl_letter_json(const struct ctl_letter *letter, const struct config *config, bool with_value);

/* Print what ctl_letter_json() has made with the value, for people. */
void ctl_letter_print(const json_t *letter, FILE *out);

#endif
