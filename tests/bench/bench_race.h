/* SPDX-License-Identifier: Apache-2.0 */
/* A race: methods answer the same queries in turn, so that whatever else the machine does hits all alike, and every
 * answer is judged against the K best that were found independently. */
#ifndef TESTS_BENCH_BENCH_RACE_H
#define TESTS_BENCH_BENCH_RACE_H

#include "base/query.h"
#include "tests/bench/bench_report.h"

enum { BENCH_K_MAX = 128, BENCH_BATCH_MAX = 32, RACERS_MAX = 24, RACE_ROUNDS_MAX = 400 };

/* What a method returned for one query. */
struct found {
  size_t n;
  uint32_t ids[BENCH_K_MAX];
  float scores[BENCH_K_MAX];
  bool has_scores;
  bool has_receipt;
  struct receipt receipt;
  uint64_t n_scored;
};

/* The K + 1 best of one query, by other means than those that are judged. */
struct truth {
  size_t n;
  uint32_t ids[BENCH_K_MAX];
  double scores[BENCH_K_MAX];
  double tolerance; /* on a score */
};

struct racer {
  char name[48];
  void *self;
  void (*prepare)(void *self, size_t round); /* what comes before it and is not timed; NULL: nothing */
  void (*run)(void *self, size_t round);
  void (*collect)(void *self, struct found *found);
  void (*told)(void *self, double *wall_ms, double *cpu_ms); /* what it measured itself; NULL: the clocks are right */
  bool must_be_exact;
  bool is_peer;
  char rival[48];      /* of a peer: the method of ours that does the same */
  double scale;        /* times are multiplied by it: a smaller problem was solved; 0: none */
  double scored_bytes; /* bytes that it reads at least, for the share of the memory limit; 0: not said */
  double fmas;         /* fused multiply-adds of a run; 0: not said */
  double bytes_per_item;
  bool is_per_item; /* print nanoseconds an item and query */

  /* Results. */
  double wall[RACE_ROUNDS_MAX], cpu[RACE_ROUNDS_MAX];
  size_t n;
  double spent_ms;
  double sum_recall, sum_scored;
  size_t n_judged;
  bool was_wrong;
};

struct race {
  const struct bench_options *options;
  size_t items, k, batch;
  size_t max_rounds; /* at most RACE_ROUNDS_MAX */
  size_t n_racers;
  struct racer *racers; /* [RACERS_MAX] */
  void *context;
  /* The K + 1 best of each query of a round; NULL: nothing is judged. */
  const struct truth *(*truth_of)(void *context, size_t round);
  /* Score of an item, in double precision. */
  double (*score_of)(void *context, size_t round, size_t query, uint32_t item);
  double memory_rate; /* bytes a nanosecond, for shares; 0: not said */
  double fma_rate;    /* multiply-adds a nanosecond */
};

err_t race_init(const struct bench_options *options, size_t items, size_t k, size_t batch, struct race *out);
void race_fini(struct race *race);

/* A new racer, whose fields the caller sets. */
struct racer *race_add(struct race *race, const char *name, void *self, void (*run)(void *, size_t),
                       void (*collect)(void *, struct found *));

/* Run: each racer until it used its seconds or max_rounds are over, and at least twice. */
void race_run(struct race *race);

/* The rows of all racers: n_racers of them; ratios, of processor time, are to the racer named "scalar", and of
 * peers to their rivals. */
void race_rows(const struct race *race, struct bench_row *rows);

/* Print them. */
void race_report(const struct race *race);

#endif
