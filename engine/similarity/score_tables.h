/* SPDX-License-Identifier: Apache-2.0 */
/* Scores that are sums of table entries: an item has a code in each of n splits, and a query a table for each split. A
 * scan over the codes can then add further tables, for what else counts (engine/boosts/boosted_scan.h).
 *
 * Tables are of levels: how far an entry stays below the best one of its split, as bytes. An item whose levels add up
 * to more than a limit scores below a threshold.
 */
#ifndef ENGINE_SIMILARITY_SCORE_TABLES_H
#define ENGINE_SIMILARITY_SCORE_TABLES_H

#include <stddef.h>
#include <stdint.h>

struct score_tables;

struct score_tables_ops {
  /* Fill in the tables and the scale for a threshold. */
  void (*quantise)(struct score_tables *t, float threshold);

  /* Return the limit that a threshold has, with the tables as they are: at most 254. */
  uint8_t (*limit)(const struct score_tables *t, float threshold);

  /* Find the codes of the slots from `first` on, a multiple of PQ_BLOCK_ITEMS: up to so many. rows [n] */
  void (*find_rows)(const struct score_tables *t, size_t first, const uint8_t **rows);

  /* Return the score of a slot that has a part. */
  float (*score)(const struct score_tables *t, uint32_t slot);
};

/* The tables of one query over the columns of a space. */
struct score_tables {
  const struct score_tables_ops *ops;
  size_t n;                     /* splits */
  double best;                  /* no item scores more */
  double scale;                 /* levels in one unit of score; 0: all levels are 0 */
  const uint8_t *const *tables; /* [n][PQ_SUBITEMS], each aligned to 64 */
};

#endif
