/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters of the catalogue that no broker has yet, and the positions that they hold back.
 *
 * A record that cannot be used must not be passed for good before its letter has arrived; but a dead-letter topic that
 * is away must not stop the catalogue either. So the stream goes on, and the position that the store keeps for a
 * partition stays before its oldest open letter: after a crash, records from there on are read again, those that were
 * applied are skipped, and the letters are sent again.
 *
 * Thread: catalogue; the flags are set by the delivery thread.
 */
#ifndef DAEMON_CATALOGUE_LETTER_WINDOW_H
#define DAEMON_CATALOGUE_LETTER_WINDOW_H

#include <stdatomic.h>

#include "base/err.h"
#include "store/store.h"

/* Letters that may be open at a time. */
enum { LETTER_WINDOW_MAX = 4096 };

struct letter {
  struct store_position before; /* where its partition stood before the record */
  bool is_forgotten;            /* its partition was taken up anew: it holds nothing back */
  _Atomic bool is_settled;
};

struct letter_window {
  struct letter *letters; /* [LETTER_WINDOW_MAX], a ring */
  size_t first;
  size_t n;
};

err_t letter_window_init(struct letter_window *w);
void letter_window_fini(struct letter_window *w);

/* Open a letter; the delivery sets is_settled. NULL when too many are open. */
struct letter *letter_window_push(struct letter_window *w, const struct store_position *before);

/* Take the newest letter back: it was not sent. */
void letter_window_pop(struct letter_window *w);

/* Let go of what is settled. Returns whether some was. */
bool letter_window_settle(struct letter_window *w);

/* Where the oldest open letter of a partition holds it; NULL when none does. */
const struct store_position *letter_window_hold(const struct letter_window *w, int32_t partition);

/* The log is taken up anew, from where the store stands. */
void letter_window_forget(struct letter_window *w);

#endif
