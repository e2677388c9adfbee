/* SPDX-License-Identifier: Apache-2.0 */
/* A race: methods answer the same queries in turn, so other load on the machine slows all of them alike. Every answer
 * is compared with K best that were found independently. */
#ifndef TESTS_BENCH_BENCH_RACE_H
#define TESTS_BENCH_BENCH_RACE_H

#include "base/query.h"
#include "tests/bench/bench_report.h"

enum { BENCH_BATCH_MAX = 32, RACERS_MAX = 24, RACE_ROUNDS_MAX = 400 };

/* A method's answer to one query. */
struct found {
  size_t n;
  uint32_t ids[BENCH_K_MAX];
  float scores[BENCH_K_MAX];
  bool has_scores;
  bool has_receipt;
  struct receipt receipt;
  uint64_t n_scored;
};

/* The K + 1 best of one query, found independently of the racers. */
struct truth {
  size_t n;
  uint32_t ids[BENCH_K_MAX];
  double scores[BENCH_K_MAX];
  double tolerance; /* on a score */
};

struct racer {
  char name[48];
  void *self;
  void (*prepare)(void *self, size_t round); /* untimed work before a run; NULL: none */
  void (*run)(void *self, size_t round);
  void (*collect)(void *self, struct found *found);
  void (*told)(void *self, double *wall_ms, double *cpu_ms); /* its own times; NULL: use our clocks */
  bool must_be_exact;
  bool is_peer;
  char rival[48];      /* for a peer: our method that does the same */
  double scale;        /* multiply times by this, because a smaller problem was solved; 0: do not */
  double scored_bytes; /* bytes that a run must read, for its share of the memory peak; 0: unknown */
  double fmas;         /* fused multiply-adds per run; 0: unknown */
  double bytes_per_item;
  bool is_per_item; /* print nanoseconds per item and query */

  /* Results. */
  double wall[RACE_ROUNDS_MAX], cpu[RACE_ROUNDS_MAX];
  size_t n;
  double spent_ms;  /* in timed runs */
  double warmed_ms; /* in untimed ones */
  double sum_recall, sum_scored;
  size_t n_judged;
  bool was_wrong;
};

struct race {
  const struct bench_options *options;
  const char *variant; /* of all rows, see struct bench_row; may be NULL */
  size_t items, k, batch;
  size_t max_rounds; /* at most RACE_ROUNDS_MAX */
  size_t n_racers;
  struct racer *racers; /* [RACERS_MAX] */
  void *context;
  /* Return the K + 1 best of each query of a round. NULL: answers are not judged. */
  const struct truth *(*truth_of)(void *context, size_t round);
  /* Return an item's score in double precision. */
  double (*score_of)(void *context, size_t round, size_t query, uint32_t item);
  /* Tell a peer the filters of a round, before each of its runs. NULL: no filters that change between rounds. */
  void (*tell_peers)(void *context, size_t round);
  double memory_rate; /* memory peak in bytes per nanosecond; 0: unknown */
  double fma_rate;    /* multiply-adds a nanosecond */
};

err_t race_init(const struct bench_options *options, size_t items, size_t k, size_t batch, struct race *out);
void race_fini(struct race *race);

/* Add a racer and return it; the caller sets its fields. */
struct racer *race_add(struct race *race, const char *name, void *self, void (*run)(void *, size_t),
                       void (*collect)(void *, struct found *));

/* Run each racer at least twice, until its seconds or max_rounds are used up. */
void race_run(struct race *race);

/* Write a row for each of the n_racers. Ratios are of CPU time: ours to the racer named "scalar", a peer's to its
 * rival. */
void race_rows(const struct race *race, struct bench_row *rows);

/* Print them. */
void race_report(const struct race *race);

#endif
