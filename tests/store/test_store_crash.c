/* SPDX-License-Identifier: Apache-2.0 */
/* A process that applies batches is killed at random moments; what it leaves must be exactly what the log says at the
 * positions that it stored, and nothing that it reported as committed may be missing.
 *
 * The log is a function of the offset, so that child and parent need not talk. One counter, in memory that both share,
 * tells how far the child has reported. LMDB must not live through a fork, so the parent has the store
 * open between children only.
 */
#include "store/store.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/store_private.h"
#include "tests/support/store_oracle.h"
#include "tests/support/temp_dir.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  KILLS = 100,
  REBUILD_KILLS = 40,
  PARTITIONS = 3,
  BATCH_MAX = 60,
  OVERLAP_MAX = 10,     /* changes that a child applies again when it starts */
  LIFE_US_MAX = 40000,  /* of a child */
  SHORT_LIFE_US = 4000, /* where the disk has been so slow that the time is used up */
  BUDGET_S = 7,         /* of one test: from then on lives are short */
  POLL_US = 500,
  PATIENCE_US = 1000000,
  LOG_LENGTH = 150,     /* of one log, where the child rebuilds */
};

static uint64_t seed;

/* Shared with the child. */
struct progress {
  _Atomic int64_t committed; /* next offset, once store_apply() has returned */
  _Atomic int64_t finished;  /* number of the newest rebuild that is complete */
  _Atomic unsigned n_batches;
};

struct fixture {
  struct temp_dir dir;
  char path[PATH_MAX];
  struct progress *progress;
  int64_t deadline_ns;
};

static int setup(void **state)
{
  struct fixture *f = calloc(1, sizeof *f);

  assert_non_null(f);
  temp_dir_init(&f->dir);
  snprintf(f->path, sizeof f->path, "%s/store", f->dir.path);
  f->progress = mmap(NULL, sizeof *f->progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(f->progress != MAP_FAILED);
  f->deadline_ns = clock_now_ns() + BUDGET_S * CLOCK_NS_PER_S;
  *state = f;
  return 0;
}

static int teardown(void **state)
{
  struct fixture *f = *state;

  munmap(f->progress, sizeof *f->progress);
  temp_dir_fini(&f->dir);
  free(f);
  return 0;
}

/* The change at an offset of a log. Now and then a key changes its partition. */
static struct oracle_item log_at(uint64_t log, int64_t offset, size_t n_ids)
{
  struct dice dice = { seed ^ (log << 40) ^ (uint64_t)offset };
  struct oracle_item change = {
    .id = (uint32_t)(dice_below(&dice, n_ids) + log * 7 % 90),
    .is_delete = dice_below(&dice, 4) == 0,
    .offset = offset,
  };

  change.partition = (int32_t)((change.id + (dice_below(&dice, 8) == 0)) % PARTITIONS);
  change.timestamp_ms = 1 + offset + (int64_t)dice_below(&dice, 50);
  for (size_t i = 0; i < ORACLE_SPACES; i++)
    change.seeds[i] = dice_below(&dice, 2) ? dice_u64(&dice) | 1 : 0;
  return change;
}

/* Apply the log from `from` to before `to`, in one batch. */
static err_t apply_log(struct store *s, uint64_t log, int64_t from, int64_t to, size_t n_ids)
{
  struct item_change changes[BATCH_MAX + OVERLAP_MAX];
  struct store_position positions[PARTITIONS];
  static struct region region;

  region_reset(&region);
  for (int64_t offset = from; offset < to; offset++) {
    struct oracle_item item = log_at(log, offset, n_ids);
    changes[offset - from] = oracle_change(&item, &region);
  }
  for (int32_t i = 0; i < PARTITIONS; i++)
    positions[i] = (struct store_position){ { i, to }, to - 1, log, to, 0 };
  return store_apply(s, changes, (size_t)(to - from), positions, PARTITIONS, NULL);
}

/* The next offset of the log. All partitions say the same, as they were written together. */
static int64_t stored_next(const struct store *s, uint64_t log)
{
  size_t n;
  const struct store_position *positions = store_positions(s, &n);

  if (n == 0)
    return 0;
  assert_int_equal(n, PARTITIONS);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(positions[i].at.partition, i);
    assert_int_equal(positions[i].at.next, positions[0].at.next);
    assert_int_equal(positions[i].last_digest, log);
  }
  return positions[0].at.next;
}

static int complain(void)
{
  fprintf(stderr, "child: %s: %s\n", err_origin(), err_message());
  return 1;
}

static void wait_for_a_batch(const struct fixture *f)
{
  unsigned before = atomic_load(&f->progress->n_batches);
  int left_us = PATIENCE_US;

  for (; atomic_load(&f->progress->n_batches) == before && left_us > 0; left_us -= POLL_US)
    usleep(POLL_US);
}

/* Run `child` for a random while, then kill it; every other time, count from its next batch, so that the test gets on
 * where the disk is slow. It never ends by itself. */
static void run_and_kill(struct fixture *f, struct dice *dice, int (*child)(struct fixture *, struct dice *))
{
  int status;

  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would outlive a test that is cut short */
    _exit(child(f, dice));
  }
  bool is_late = clock_now_ns() > f->deadline_ns;
  if (!is_late && dice_below(dice, 2))
    wait_for_a_batch(f);
  usleep((useconds_t)dice_below(dice, is_late ? SHORT_LIFE_US : LIFE_US_MAX));
  kill(pid, SIGKILL);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
    fail_msg("the child ended with status %#x", (unsigned)status);
}

/* --- kill while batches are applied --- */

enum { IDS = 200 };

static int apply_forever(struct fixture *f, struct dice *dice)
{
  struct store *s = NULL;

  if (store_open_sized(f->path, 256 * 1024, &s) != ERR_OK) /* a map that grows on the way */
    return complain();
  int64_t next = stored_next(s, 1);
  int64_t from = next - (int64_t)dice_below(dice, OVERLAP_MAX + 1);
  for (from = from < 0 ? 0 : from;; from = next) {
    next += 1 + (int64_t)dice_below(dice, BATCH_MAX);
    if (apply_log(s, 1, from, next, IDS) != ERR_OK)
      return complain();
    atomic_store(&f->progress->committed, next);
    atomic_fetch_add(&f->progress->n_batches, 1);
  }
}

static void every_kill_leaves_exactly_what_the_positions_say(void **state)
{
  struct fixture *f = *state;
  struct dice dice = { seed };
  struct oracle o = { 0 };
  int64_t applied = 0;
  int n_beyond = 0; /* kills between commit and report */

  for (int kill = 0; kill < KILLS; kill++) {
    struct store *s = NULL;
    run_and_kill(f, &dice, apply_forever);
    assert_ok(store_open(f->path, &s));
    int64_t next = stored_next(s, 1);
    int64_t reported = atomic_load(&f->progress->committed);
    assert_true(next >= reported && next <= reported + BATCH_MAX + OVERLAP_MAX);
    n_beyond += next > reported;
    for (; applied < next; applied++) {
      struct oracle_item change = log_at(1, applied, IDS);
      oracle_apply(&o, &change);
    }
    oracle_compare(&o, s); /* to the slot: batches are cut anywhere, their order is the log's */
    store_close(&s);
  }
  print_message("%d kills, %lld changes, %d kills between commit and report\n", KILLS, (long long)applied, n_beyond);
  assert_true(applied > KILLS);
  oracle_fini(&o);
}

/* --- kill while rebuilding --- */

enum { REBUILD_IDS = 60, TIDY_MAX = 25 };

/* Rebuild number n is read from log n: to its end, then the next one begins. What is dropped is freed meanwhile. */
static err_t rebuild_once(struct fixture *f, struct store *s, struct dice *dice)
{
  uint64_t log = store_rebuild_number(s);
  bool is_done;

  if (!store_is_rebuilding(s))
    return store_begin_rebuild(s);
  for (int64_t next = stored_next(s, log); next < LOG_LENGTH;) {
    int64_t from = next;
    next += 1 + (int64_t)dice_below(dice, 40);
    next = next > LOG_LENGTH ? LOG_LENGTH : next;
    TRY(apply_log(s, log, from, next, REBUILD_IDS));
    atomic_fetch_add(&f->progress->n_batches, 1);
    TRY(store_tidy(s, TIDY_MAX, &is_done));
  }
  TRY(store_finish_rebuild(s));
  atomic_store(&f->progress->finished, (int64_t)log);
  return ERR_OK;
}

static int rebuild_forever(struct fixture *f, struct dice *dice)
{
  struct store *s = NULL;

  if (store_open_sized(f->path, 256 * 1024, &s) != ERR_OK)
    return complain();
  for (;;)
    if (rebuild_once(f, s, dice) != ERR_OK)
      return complain();
}

/* The store's live items are what a log makes, up to an offset, from nothing. */
static void verify_live(struct store *s, uint64_t log, int64_t to)
{
  struct oracle o = { 0 };

  for (int64_t offset = 0; log > 0 && offset < to; offset++) {
    struct oracle_item change = log_at(log, offset, REBUILD_IDS);
    oracle_apply(&o, &change);
  }
  oracle_compare(&o, s);
  oracle_fini(&o);
}

/* What was made live before its log was at its end, by this test. */
struct cut_short {
  uint64_t log;
  int64_t next;
};

static void verify_rebuild(struct store *s, struct dice *dice, struct cut_short *cut)
{
  uint64_t newest = store_rebuild_number(s);
  uint64_t log = store_is_rebuilding(s) ? newest - 1 : newest;

  verify_live(s, log, log == cut->log ? cut->next : LOG_LENGTH);
  if (!store_is_rebuilding(s) || dice_below(dice, 2))
    return;
  *cut = (struct cut_short){ newest, stored_next(s, newest) };
  assert_ok(store_finish_rebuild(s)); /* to look into it */
  verify_live(s, cut->log, cut->next);
}

static void every_kill_in_a_rebuild_leaves_two_whole_catalogues(void **state)
{
  struct fixture *f = *state;
  struct dice dice = { seed + 1 };
  struct cut_short cut = { 0 };
  uint64_t newest = 0;
  int n_cut = 0; /* kills in the middle of a rebuild */

  for (int kill = 0; kill < REBUILD_KILLS; kill++) {
    struct store *s = NULL;
    run_and_kill(f, &dice, rebuild_forever);
    assert_ok(store_open(f->path, &s));
    newest = store_rebuild_number(s);
    assert_true(newest >= (uint64_t)atomic_load(&f->progress->finished));
    n_cut += store_is_rebuilding(s);
    verify_rebuild(s, &dice, &cut);
    store_close(&s);
  }
  print_message("%d kills, %llu rebuilds, %d kills in one\n", REBUILD_KILLS, (unsigned long long)newest, n_cut);
  assert_true(newest > 1 && n_cut > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_kill_leaves_exactly_what_the_positions_say, setup, teardown),
    cmocka_unit_test_setup_teardown(every_kill_in_a_rebuild_leaves_two_whole_catalogues, setup, teardown),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
