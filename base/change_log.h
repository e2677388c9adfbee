/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed of bits that are derived from something: the epoch of the last change, and the words of 64 bits that
 * the newest changes touched. Whoever keeps bits of an older epoch can bring just these words up to date.
 *
 * A change is noted when it is made, and dated when the epoch that it belongs to is known. The list is bounded: it
 * forgets the oldest changes.
 *
 * Thread: one that writes, or any that read what is dated.
 */
#ifndef BASE_CHANGE_LOG_H
#define BASE_CHANGE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CHANGE_LOG_WORDS = 4096 }; /* a power of two */

struct word_change {
  uint64_t epoch;
  size_t word;
};

struct change_log {
  uint64_t epoch;           /* of the last change; 0: there was none */
  uint64_t known_since;     /* the words of changes in later epochs are listed */
  struct word_change *ring; /* [CHANGE_LOG_WORDS]: change i is at i % CHANGE_LOG_WORDS */
  uint64_t n;               /* changes ever listed */
  uint64_t n_dated;         /* of them; later ones belong to the next epoch */
  bool forgets_next;        /* a change of the next epoch is not listed */
};

/* Returns ERR_MEMORY. */
err_t change_log_init(struct change_log *out);
void change_log_fini(struct change_log *l);

/* Note a change of bit i. */
void change_log_touch(struct change_log *l, size_t i);

/* Note a change of any bits. */
static inline void change_log_touch_all(struct change_log *l)
{
  l->forgets_next = true;
}

/* Changes since the last call belong to this epoch. */
void change_log_date(struct change_log *l, uint64_t epoch);

/* How many changes are listed of epochs after `since`, which is not before known_since? One word may have several. */
size_t change_log_count(const struct change_log *l, uint64_t since);

/* The word of the i-th newest change. i is less than a result of change_log_count(). */
static inline size_t change_log_word(const struct change_log *l, size_t i)
{
  return l->ring[(l->n - 1 - i) % CHANGE_LOG_WORDS].word;
}

#endif
