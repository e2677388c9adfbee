/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters of a topic that are not delivered yet, and the positions that they hold back.
 *
 * The stored position must not pass a bad record before its dead letter is delivered. But a dead-letter topic that is
 * away must not stop the reading either. So later records are applied, while the stored position of the partition
 * stays before its oldest open letter. After a crash, records are read again from there: those that were applied are
 * skipped, and the letters are sent again.
 *
 * Thread: the owner's; the delivery thread sets is_settled.
 */
#ifndef DAEMON_TOPIC_LETTER_WINDOW_H
#define DAEMON_TOPIC_LETTER_WINDOW_H

#include <stdatomic.h>

#include "base/err.h"
#include "daemon/delivery/delivery.h"
#include "ingest/kafka/topic_record.h"
#include "store/store.h"

/* Maximum number of open letters. */
enum { LETTER_WINDOW_MAX = 4096 };

struct open_letter {
  struct store_position before; /* position of the partition before the record */
  bool is_forgotten;            /* its partition was resumed since, so it holds no position back */
  _Atomic bool is_settled;      /* it was delivered, or can never be */
};

struct letter_window {
  struct open_letter *letters; /* [LETTER_WINDOW_MAX], a ring */
  size_t first;                /* index of the oldest */
  size_t n;
};

err_t letter_window_init(struct letter_window *w);
void letter_window_fini(struct letter_window *w);

/* Add a letter and return it; the delivery thread sets its is_settled. Returns NULL when too many are open. */
struct open_letter *letter_window_push(struct letter_window *w, const struct store_position *before);

/* Remove the newest letter, which was not sent. */
void letter_window_pop(struct letter_window *w);

/* Send the dead letter of a record. The partition is held back before the record until the letter is settled. The
 * thread's newest failure is the letter's reason.
 *
 * topic         the dead-letter topic; outlives the letter
 * source_topic  that of the record
 * err           the failure
 *
 * Returns false if too many letters are open or on their way: it was not sent, and holds nothing back.
 */
bool letter_window_send(struct letter_window *w, struct delivery *delivery, const char *topic,
                        const struct topic_record *record, const char *source_topic, err_code_t err);

/* Remove settled letters, oldest first, up to the first open one. Returns true if there were any. */
bool letter_window_settle(struct letter_window *w);

/* Return the position before the oldest open letter of a partition; NULL if no letter holds the partition back. */
const struct store_position *letter_window_hold(const struct letter_window *w, int32_t partition);

/* Forget all letters: they hold no positions back any more. Reading resumes at the stored positions, so their records
 * come again. */
void letter_window_forget(struct letter_window *w);

#endif
