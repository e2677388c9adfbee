/* SPDX-License-Identifier: Apache-2.0 */
/* Shortlists: for many lists at once, find the N best items of each. A scan computes approximate scores, in integers.
 * Another routine computes exact scores, but only for items whose rank the approximate scores leave open. The result is
 * exact, and ties are broken by key.
 *
 * A scan appends to scan_list.entries every item whose approximate score reaches scan_list.threshold. No approximation
 * differs from the exact score by more than the slack. Let T be the N-th best approximate score so far. Then N items
 * have exact scores of at least T - slack, and an item with an approximate score below T - 2 slack scores less than
 * each of them.
 *
 * Thresholds higher than that are guessed. The slots seen so far are a sample, and the share of the N best among them
 * predicts the N-th best score of all. At the end, a guess T is proven right if N entries have approximate scores of T
 * + 2 slack or more: every item that the guess excluded scores less than each of them. Otherwise the slots are scanned
 * again without guesses. Scan the slots in an order that is spread evenly over all of them (spread.h), or guesses are
 * wrong more often.
 *
 * Thread: the one that searches. Allocates: at init, from the region.
 */
#ifndef ENGINE_SHORTLIST_H
#define ENGINE_SHORTLIST_H

#include "base/region.h"
#include "engine/similarity/admit.h"
#include "kernels/kernels.h"
#include "kernels/topk.h"

enum {
  SHORTLIST_CHUNK = 256,         /* a chunk: consecutive slots that are scanned between two calls of make_room() */
  SHORTLIST_SCORE_MAX = 1 << 30, /* no approximate score is larger */
  SHORTLIST_SLACK_MAX = 1 << 28,
};

/* A list's score scale and admission test. */
struct shortlist_scale {
  const struct admit *admit;
  double units;   /* an approximate score is about `units` times the exact one */
  int32_t slack;  /* upper bound on |approximate score - units * exact score|: 1 to SHORTLIST_SLACK_MAX */
  int32_t offset; /* the scan's sums are too large by this; scan_list.start is -offset - threshold */
};

struct shortlists {
  size_t n_lists;
  size_t n_best;           /* N */
  struct scan_list *lists; /* [n_lists], given to the scan */

  /* Set by the caller before shortlist_init(). */
  const struct kernels *kernels;
  size_t n_slots; /* number of slots; higher slots that a scan appends are dropped */
  topk_key_order order;
  const void *order_context;
  /* Compute scores[i], the exact score of entries[i].slot in a list. Scores are never NaN. */
  void (*exact)(const void *context, size_t list, const struct scan_entry *entries, size_t n, float *scores);
  const void *exact_context;

  /* Private. */
  const struct shortlist_scale *scales; /* [n_lists] */
  size_t n_usual;                       /* entries that a list may have before make_room() reduces it */
  bool is_guessing;
  size_t n_seen;               /* slots scanned since the lists were empty */
  uint32_t *limits;            /* [n_lists] make_room() looks at a list once it has this many entries */
  int32_t *guesses;            /* [n_lists] the highest threshold that was guessed for each list */
  size_t n_unseen;             /* entries appended since make_room() last looked */
  size_t capacity;             /* entries of each list */
  uint32_t *n_admitted;        /* [n_lists] number of leading entries that are known to be admitted */
  struct scan_entry *exact_of; /* [capacity] exact scores as integers of the same order */
  struct scan_entry *spare;    /* [capacity] */
  float *scores;               /* [capacity] */
  struct topk_entry *tied;     /* [capacity] */
};

/* The bytes that n_lists lists need. */
size_t shortlist_bytes(size_t n_lists, size_t n_best, size_t n_slots);

/* Allocate max_lists lists for up to max_best items each. A list never needs room for more than n_slots items. Returns
 * ERR_MEMORY. */
err_t shortlist_init(struct shortlists *s, size_t max_lists, size_t max_best, struct region *region);

/* Begin with n_lists <= max_lists empty lists and 1 <= n_best <= max_best. is_guessing: guess thresholds. */
void shortlist_reset(struct shortlists *s, const struct shortlist_scale *scales, size_t n_lists, size_t n_best,
                     bool is_guessing);

/* Guess no more thresholds: the slots to come are not spread evenly. */
void shortlist_stop_guessing(struct shortlists *s);

/* Make room for SHORTLIST_CHUNK more entries in every list, and raise thresholds.
 *
 * n_scanned   slots scanned since the last call
 * n_appended  entries that this scan appended to all lists together
 */
void shortlist_make_room(struct shortlists *s, size_t n_scanned, size_t n_appended);

/* After all slots: does the list hold its N best items? If not, a guess was wrong, and the slots must be scanned again
 * without guesses. Call this before shortlist_finish(). */
bool shortlist_is_complete(struct shortlists *s, size_t list);

/* Reduce a list to its N best items, in no particular order, or to all if it has fewer. Returns the N-th best exact
 * score, or -inf if there are fewer than N. */
float shortlist_finish(struct shortlists *s, size_t list);

#endif
