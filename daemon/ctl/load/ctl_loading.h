/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of load share: rows that are sent at a rate, and not again after a load that was ended. Thread: one.
 */
#ifndef DAEMON_CTL_CTL_LOADING_H
#define DAEMON_CTL_CTL_LOADING_H

#include "daemon/ctl/ctl_pace.h"
#include "daemon/ctl/writer/ctl_resume.h"
#include "daemon/ctl/writer/ctl_writer.h"

struct ctl_load_options {
  const char *path;
  const char *space;      /* NULL: the only one */
  const char *tensor;     /* NULL: the only one */
  const char *keys;       /* NULL: the rows' numbers */
  const char *key_prefix; /* "" if there is none */
  const char *resume;     /* NULL: send all rows */
  uint64_t rate;          /* records a second; 0: as fast as possible */
};

struct ctl_loading {
  const struct ctl_load_options *options;
  struct ctl_writer *writer;
  struct ctl_resume *resume; /* NULL: send all rows */
  struct ctl_progress progress;
  struct region region; /* for one record */
  struct ctl_pace pace;
  uint64_t n_sent;
  uint64_t n_known; /* rows that Kafka had before */
  uint64_t n_bad;   /* lines that cannot be used */
  uint64_t n_lines;
};

void ctl_loading_fini(struct ctl_loading *l);

/* Open the file of --resume, if it is given.
 *
 * more    what is loaded apart from the file and the topic: lines, or ""
 * n_rows  of the load
 * row     what a message calls one: "row", "line"
 */
err_t ctl_loading_open_resume(struct ctl_loading *l, const char *more, uint64_t n_rows, const char *row);

/* Does Kafka have this row from an earlier run? If so, it is counted. */
bool ctl_loading_has(struct ctl_loading *l, uint64_t row);

/* Send a record when it is due. Returns what ctl_writer_send() does. */
err_t ctl_loading_send(struct ctl_loading *l, uint64_t row, const struct ctl_record *record);

#endif
