/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a load Kafka has, in a file that outlives the load: a bit for each row. A row is that of an array, or a
 * line of text. Thread: one. */
#ifndef DAEMON_CTL_CTL_RESUME_H
#define DAEMON_CTL_CTL_RESUME_H

#include "base/err.h"

struct ctl_resume;

/* So begins a line of an identity that says in which state a file is. */
#define CTL_RESUME_STATE "state "

/* Open the file, or make it.
 *
 * identity  what is loaded, a line each; at most 4,000 bytes. A file with another identity is refused
 * n_rows    of the load
 * row       what a message calls one: "row", "line"
 *
 * Returns ERR_SYSTEM: the file is of another load, in use by another process, or cannot be written.
 */
err_t ctl_resume_open(const char *path, const char *identity, uint64_t n_rows, const char *row,
                      struct ctl_resume **out);
void ctl_resume_close(struct ctl_resume **r);

/* Note that Kafka has a row. It is known after the process was killed, too: the kernel has the page. After a crash of
 * the machine some rows may be forgotten. */
void ctl_resume_mark(struct ctl_resume *r, uint64_t row);

/* Does Kafka have this row? */
bool ctl_resume_has(const struct ctl_resume *r, uint64_t row);

/* Return how many rows Kafka has. */
uint64_t ctl_resume_count(const struct ctl_resume *r);

#endif
