/* SPDX-License-Identifier: Apache-2.0 */
/* Shortlists: the N best items of many lists by scores that a scan knows approximately, in integers, and another
 * routine exactly. Which items those are is decided exactly, ties by key; exact scores are computed only for items
 * whose rank the approximate ones leave open.
 *
 * A scan appends to scan_list.entries every item whose approximate score reaches scan_list.threshold. With T the N-th
 * best approximate score so far and a slack that no approximation misses the exact score by, N items have exact scores
 * of T - slack or more, so that an item whose approximate score is below T - 2 slack scores less than each of them.
 *
 * Thresholds are guessed to be higher than that: of the N best, those among the slots seen so far are a sample, from
 * which follows what the N-th best of all will be. A guess T is proven right at the end, when N entries score T + 2
 * slack or more: what it kept out scores less than each of them. Otherwise the slots are scanned again without guesses.
 * Slots should be seen in an order that is spread over all (spread.h), or guesses are wrong more often.
 *
 * Thread: the one that searches. Allocates: at init, from the region.
 */
#ifndef ENGINE_SHORTLIST_H
#define ENGINE_SHORTLIST_H

#include "base/region.h"
#include "engine/admit.h"
#include "kernels/kernels.h"
#include "kernels/topk.h"

enum {
  SHORTLIST_CHUNK = 256,         /* slots that a scan may append to a list between two calls of make_room() */
  SHORTLIST_SCORE_MAX = 1 << 30, /* what no approximate score exceeds */
  SHORTLIST_SLACK_MAX = 1 << 28,
};

/* How the integers of one list read, and whom it takes. */
struct shortlist_scale {
  const struct admit *admit;
  double units;   /* an approximate score is about units times the exact one */
  int32_t slack;  /* and no further than this from it: 1 to SHORTLIST_SLACK_MAX */
  int32_t offset; /* what the scan's sums have in excess: scan_list.start is -offset - threshold */
};

struct shortlists {
  size_t n_lists;
  size_t n_best;           /* N */
  struct scan_list *lists; /* [n_lists] for the scan */

  /* Of the caller, to be set before init. */
  const struct kernels *kernels;
  size_t n_slots; /* a scan may append slots from here on: they are dropped */
  topk_key_order order;
  const void *order_context;
  /* scores[i] = the exact score of entries[i].slot in a list; never NaN. */
  void (*exact)(const void *context, size_t list, const struct scan_entry *entries, size_t n, float *scores);
  const void *exact_context;

  /* Private. */
  const struct shortlist_scale *scales; /* [n_lists] */
  size_t n_usual;                       /* entries that make_room() leaves in a list */
  bool is_guessing;
  size_t n_seen;               /* slots since the lists were empty */
  uint32_t *limits;            /* [n_lists] entries at which make_room() looks at a list */
  int32_t *guesses;            /* [n_lists] the highest threshold that was guessed */
  size_t n_unseen;             /* entries that came since it looked */
  size_t capacity;             /* of each list */
  uint32_t *n_admitted;        /* [n_lists] entries in front that are known to be admitted */
  struct scan_entry *exact_of; /* [capacity] exact scores in an order of integers */
  struct scan_entry *spare;    /* [capacity] */
  float *scores;               /* [capacity] */
  struct topk_entry *tied;     /* [capacity] */
};

/* Bytes of n_lists lists. */
size_t shortlist_bytes(size_t n_lists, size_t n_best, size_t n_slots);

/* Room for max_lists lists of max_best, which need no more memory than lists of n_slots do. */
err_t shortlist_init(struct shortlists *s, size_t max_lists, size_t max_best, struct region *region);

/* Begin anew with n_lists <= max_lists empty lists, 1 <= n_best <= max_best; with guesses, or without. */
void shortlist_reset(struct shortlists *s, const struct shortlist_scale *scales, size_t n_lists, size_t n_best,
                     bool is_guessing);

/* Make room for SHORTLIST_CHUNK more entries in every list, and raise thresholds.
 * n_scanned   slots that were scanned since the last call
 * n_appended  entries that came from them, to all lists together */
void shortlist_make_room(struct shortlists *s, size_t n_scanned, size_t n_appended);

/* After all slots: whether a list holds its N best; where not, a guess was wrong, and the scan must be made again
 * without. To be asked before shortlist_finish(). */
bool shortlist_is_complete(struct shortlists *s, size_t list);

/* Reduce a list to its N best, or to all where it has fewer, in no particular order. Returns the N-th best exact score;
 * -inf where there are fewer than N. */
float shortlist_finish(struct shortlists *s, size_t list);

#endif
