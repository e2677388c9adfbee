/* SPDX-License-Identifier: Apache-2.0 */
/* The wait for certificates that cannot be used yet: while a certificate and its key are being written one after the
 * other, they do not fit. The owner of a client goes on with the one it has, or without one, and tries again later.
 *
 * Thread: one.
 */
#ifndef INGEST_RENEWAL_WAIT_H
#define INGEST_RENEWAL_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros: nothing is waited for. */
struct renewal_wait {
  int64_t due_ns; /* time of the next try */
  bool is_said;   /* the reason was logged */
};

/* May another client be opened now? */
bool renewal_wait_is_over(const struct renewal_wait *w);

/* Wait before the next try. The newest failure is the reason; it is logged once.
 *
 * client  name of the client, for the log
 */
void renewal_wait_begin(struct renewal_wait *w, const char *client);

/* The same before the first client is opened. */
void renewal_wait_begin_first(struct renewal_wait *w, const char *client);

/* The client was opened. */
void renewal_wait_end(struct renewal_wait *w);

#endif
